//! Counts how readable the code is, and fails where a limit is exceeded. Lines and store traits
//! have no limit: their figures are for who judges a change.
//!
//! - `source`: the production files, without tests
//! - `names`: functions, public items, types, values, store traits
//! - `circles`: files that use each other
//!
//! `cargo test -p a2a-lambda-house -- --nocapture` prints the figures, and each value that a
//! participle names.
#![cfg(test)]

mod circles;
mod names;
mod source;

use names::{Function, Names};
use source::Source;
use std::collections::BTreeMap;

const FUNCTION_MAX: usize = 70;
const CIRCLE_MAX: usize = 3;
/// Rises only in a commit that names the sentence of an issue that asks for the item.
const PUBLIC_MAX: usize = 1_568;
/// Values named by a participle, in 1,000 lines.
const PARTICIPLES_MAX: f64 = 0.5;
/// Functions named by a participle.
const FUNCTION_PARTICIPLES_MAX: usize = 7;

/// Type names that more than one file declares, with the reason. A name that is declared once
/// leaves the table.
const TWICE: [(&str, usize, &str); 6] = [
    (
        "Artifact",
        2,
        "A2A's word: the artifact of a task, and what a skill makes, without an id",
    ),
    ("Attributes", 2, "Rust's attributes and those of an item"),
    ("Delivery", 2, LOCAL),
    ("Key", 2, "the key of a signature, and that of an item"),
    ("Message", 2, LOCAL),
    ("Table", 2, "the options that name a table, and any table"),
];
const LOCAL: &str = "the local agent is a program of its own and never imports the other type";

struct House {
    sources: Vec<(Source, Names)>,
}

impl House {
    fn read() -> Self {
        let sources = source::production().into_iter().map(|source| {
            let names = names::names(&source);
            (source, names)
        });
        Self {
            sources: sources.collect(),
        }
    }

    fn packages(&self) -> BTreeMap<&str, Vec<&Source>> {
        let mut packages: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
        for (source, _) in &self.sources {
            packages.entry(&source.package).or_default().push(source);
        }
        packages
    }

    fn lines(&self) -> usize {
        self.sources.iter().map(|(source, _)| source.lines).sum()
    }

    /// Each function with the place of its first line.
    fn functions(&self) -> Vec<(String, &Function)> {
        let functions = self.sources.iter().flat_map(|(source, names)| {
            names
                .functions
                .iter()
                .map(move |function| (format!("{}:{}", source.path, function.line), function))
        });
        functions.collect()
    }
}

/// The value that this share of the values does not exceed.
fn percentile(values: &mut [usize], percent: usize) -> usize {
    values.sort_unstable();
    values
        .get((values.len() * percent).div_ceil(100).saturating_sub(1))
        .copied()
        .unwrap_or(0)
}

fn print_lines_of_packages(house: &House) {
    println!("house: package                  files   lines    code    tests  browser");
    let production = house.packages();
    let mut sums = [0; 4];
    for (package, [rust, browser]) in source::lines_of_packages() {
        let sources = production
            .get(package.as_str())
            .map_or(&[][..], Vec::as_slice);
        let lines: usize = sources.iter().map(|source| source.lines).sum();
        let code: usize = sources.iter().map(|source| source.code).sum();
        let row = [lines, code, rust - lines, browser];
        let [lines, code, tests, browser] = row;
        println!(
            "house: {package:<24} {:>5} {lines:>7} {code:>7} {tests:>8} {browser:>8}",
            sources.len()
        );
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
    let [lines, code, tests, browser] = sums;
    println!(
        "house: production has {lines} lines, {code} of them code; tests have {tests}, the page {browser}"
    );
}

fn lines_of_functions(house: &House) -> Vec<String> {
    let functions = house.functions();
    let mut sizes: Vec<usize> = functions
        .iter()
        .map(|(_, function)| function.lines)
        .collect();
    let [median, p90, p99, longest] =
        [50, 90, 99, 100].map(|percent| percentile(&mut sizes, percent));
    println!(
        "house: {} functions, median {median} lines, p90 {p90}, p99 {p99}, longest {longest}",
        sizes.len()
    );
    let long = functions
        .iter()
        .filter(|(_, function)| function.lines > FUNCTION_MAX);
    long.map(|(place, function)| format!("{place} {} has {} lines", function.name, function.lines))
        .collect()
}

fn public_items(house: &House) -> Vec<String> {
    let items: Vec<_> = house
        .sources
        .iter()
        .flat_map(|(source, names)| names.public.iter().map(move |item| (&source.path, item)))
        .collect();
    println!("house: {} public items", items.len());
    let bare = items
        .iter()
        .filter(|(_, (_, _, is_documented))| !is_documented);
    let above = (items.len() > PUBLIC_MAX)
        .then(|| format!("{} public items, above {PUBLIC_MAX}", items.len()));
    bare.map(|(path, (name, line, _))| format!("{path}:{line} {name} has no documentation"))
        .chain(above)
        .collect()
}

fn names_of_values(house: &House) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut packages: BTreeMap<&str, usize> = BTreeMap::new();
    for (source, names) in &house.sources {
        let values = names.values.iter();
        for (name, line) in values.filter(|(name, _)| names::is_participle(name)) {
            *counts.entry(name).or_default() += 1;
            *packages.entry(&source.package).or_default() += 1;
            println!("house: {}:{line} {name}", source.path);
        }
    }
    let total: usize = counts.values().sum();
    #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
    let rate = 1_000.0 * total as f64 / house.lines() as f64;
    let mut most: Vec<_> = counts.into_iter().collect();
    most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    most.truncate(12);
    println!(
        "house: participles name {total} values, {rate:.1} in 1,000 lines; most often {most:?}; \
         {packages:?}"
    );
    let fault =
        format!("participles name {rate:.1} values in 1,000 lines, above {PARTICIPLES_MAX}");
    Vec::from_iter((rate > PARTICIPLES_MAX).then_some(fault))
}

/// Functions whose whole name is a participle: an imperative says what a function does.
fn names_of_functions(house: &House) -> Vec<String> {
    let functions = house.functions();
    let participles = functions.iter();
    let participles = participles.filter(|(_, function)| names::is_participle(&function.name));
    let names: Vec<_> = participles
        .map(|(place, function)| format!("{place} {}", function.name))
        .collect();
    println!("house: participles name {} functions", names.len());
    let above = names.len() > FUNCTION_PARTICIPLES_MAX;
    let most =
        format!("above {FUNCTION_PARTICIPLES_MAX} functions named by participles: {names:?}");
    Vec::from_iter(above.then_some(most))
}

/// The words of the table in `docs/style.md` that no name may have, each with the parts of paths where
/// it may. A row with an exception but no path is for people to judge.
fn words_to_avoid() -> Vec<(String, Vec<String>)> {
    let mut words = Vec::new();
    for row in include_str!("../../docs/style.md").lines() {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, _, avoid, except] = cells[..] else {
            continue;
        };
        let paths: Vec<_> = except
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        if except.is_empty() || !paths.is_empty() {
            let single = avoid.split(", ").filter(|word| !word.contains(' '));
            words.extend(single.map(|word| (word.to_owned(), paths.clone())));
        }
    }
    words
}

/// Names with a word for which the field has a better one.
fn words_of_names(house: &House) -> Vec<String> {
    let words = words_to_avoid();
    assert!(words.len() > 12, "the table of docs/style.md: {words:?}");
    let mut faults = Vec::new();
    for (source, names) in &house.sources {
        let functions = names.functions.iter().map(|it| (&it.name, it.line));
        let others = names.types.iter().chain(&names.values).chain(&names.others);
        for (name, line) in functions.chain(others.map(|(name, line)| (name, *line))) {
            let has = |word: &str| {
                names::words(name)
                    .iter()
                    .any(|it| it == word || it.strip_suffix('s') == Some(word))
            };
            let is_here = |path: &String| source.path.contains(path.as_str());
            let bad = words
                .iter()
                .find(|(word, paths)| has(word) && !paths.iter().any(is_here));
            faults.extend(
                bad.map(|(word, _)| format!("{}:{line} `{name}` says `{word}`", source.path)),
            );
        }
    }
    faults
}

fn names_of_types(house: &House) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // The reference agent is a program that an author could have written, and so are the sets: no
    // other crate imports them.
    for (source, names) in house
        .sources
        .iter()
        .filter(|(source, _)| !["shared/agent", "shared/sets"].contains(&source.package.as_str()))
    {
        for (name, line) in &names.types {
            places
                .entry(name)
                .or_default()
                .push(format!("{}:{line}", source.path));
        }
    }
    let allowed: BTreeMap<_, _> = TWICE
        .iter()
        .map(|(name, count, _)| (*name, *count))
        .collect();
    places.retain(|name, places| places.len() != allowed.get(name).copied().unwrap_or(1));
    places
        .iter()
        .map(|(name, places)| format!("`{name}` is declared {} times: {places:?}", places.len()))
        .collect()
}

fn circles_of_files(house: &House) -> Vec<String> {
    let mut large = Vec::new();
    for (package, sources) in house.packages() {
        let circles = circles::circles(&circles::arrows(&sources));
        if !circles.is_empty() {
            println!(
                "house: circles of {package}: {:?}",
                circles.iter().map(Vec::len).collect::<Vec<_>>()
            );
        }
        let above = circles.iter().filter(|circle| circle.len() > CIRCLE_MAX);
        large.extend(above.map(|circle| {
            let names = circle.iter().map(|module| module.join("/"));
            format!(
                "a circle of {} files in {package}: {}",
                circle.len(),
                names.collect::<Vec<_>>().join(", ")
            )
        }));
    }
    large
}

/// The rooms of the engine, each above those that it may use.
const ROOMS: [&str; 23] = [
    "error",
    "limit_policy",
    "secret_keys",
    "policy",
    "brake",
    "lots",
    "reader",
    "budget",
    "admission",
    "slots",
    "turn_break",
    "files",
    "day_limits",
    "repeat",
    "seal",
    "commit",
    "push_config",
    "turn",
    "services",
    "accept",
    "handler",
    "background",
    "parts",
];

/// What the engine may use of its crate: no settings, no HTTP, no function.
const BELOW: [&str; 6] = ["auth", "clock", "outbound", "store", "task", "telemetry"];

/// The arrows between the parts of the engine that go up, and those out of it that no part may have.
fn walls_of_engine(house: &House) -> Vec<String> {
    let packages = house.packages();
    let arrows = circles::arrows(&packages["shared/runtime"]);
    let floor = |room: &str| ROOMS.iter().position(|it| *it == room);
    let mut faults = Vec::new();
    for (from, uses) in arrows
        .iter()
        .filter(|(it, _)| it.first().is_some_and(|room| room == "engine"))
    {
        for to in uses {
            // Without a room it is a name of another crate.
            let Some(room) = to.first() else { continue };
            let is_fault = match (from.get(1), room.as_str(), to.get(1)) {
                (None, "engine", _) => false,
                // A call that needs several parts is a method of the engine.
                (Some(from), "engine", Some(to)) if to == "parts" => from != "handler",
                (Some(from), "engine", Some(to)) => floor(from) < floor(to),
                _ => !BELOW.contains(&room.as_str()),
            };
            if is_fault {
                faults.push(format!("{} uses {}", from.join("/"), to.join("/")));
            }
        }
    }
    faults
}

/// The traits that a store, a queue or a meter implements.
fn print_store_methods(house: &House) {
    let folders = ["shared/model/src/store/", "shared/store/src/"];
    let traits: Vec<_> = house
        .sources
        .iter()
        .filter(|(source, _)| folders.iter().any(|folder| source.path.starts_with(folder)))
        .flat_map(|(_, names)| &names.traits)
        .collect();
    let methods: usize = traits.iter().map(|(_, methods)| methods).sum();
    println!(
        "house: {} store traits with {methods} methods",
        traits.len()
    );
}

/// Reads the sources once: that takes the longest.
#[test]
fn an_engineer_can_carry_the_house_in_the_head() {
    let house = House::read();
    print_lines_of_packages(&house);
    print_store_methods(&house);
    let counts = [
        lines_of_functions,
        public_items,
        names_of_values,
        names_of_functions,
        words_of_names,
        names_of_types,
        circles_of_files,
        walls_of_engine,
    ];
    let faults: Vec<String> = counts.iter().flat_map(|count| count(&house)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
