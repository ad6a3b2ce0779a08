//! Names in an author's files that the template does not have. SAM drops a parameter that the
//! template does not know without a word, and a misspelt change changes nothing.

/// The parameters that a samconfig sets for the stacks of this template. A stage with a template
/// of its own is another stack.
pub(super) fn parameters(samconfig: &str) -> Vec<String> {
    let (mut assignments, mut others) = (Vec::new(), Vec::new());
    let (mut stage, mut in_table, mut in_list) = ("", false, false);
    let mut text_end = None;
    for line in samconfig.lines().map(str::trim) {
        if let Some(end) = text_end {
            text_end = Some(end).filter(|end| !line.contains(end));
        } else if in_list {
            in_list = !line.ends_with(']');
            assignments.extend(parse_names(line).into_iter().map(|name| (stage, name)));
        } else if let Some(header) = line.strip_prefix('[') {
            stage = header.split('.').next().unwrap_or_default();
            in_table = header.contains(".parameter_overrides]");
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            let (key, value) = (key.trim(), value.trim());
            text_end = ["'''", "\"\"\""]
                .into_iter()
                .find(|mark| value.matches(mark).count() == 1);
            if in_table {
                assignments.push((stage, key.trim_matches(['"', '\'']).to_owned()));
            } else if key == "parameter_overrides" {
                in_list = value.starts_with('[') && !value.ends_with(']');
                assignments.extend(parse_names(value).into_iter().map(|name| (stage, name)));
            } else if key == "template" || key == "template_file" {
                others.push(stage);
            }
        }
    }
    assignments.retain(|(stage, _)| !others.contains(stage));
    assignments.into_iter().map(|(_, name)| name).collect()
}

/// The names of `A=b C=d`, of a list of such texts, or of an inline table.
fn parse_names(value: &str) -> Vec<String> {
    let mut text = value.trim_matches(['{', '}']).replace(" = ", "=");
    // The object of `Settings` has names of its own.
    if let (Some(start), Some(end)) = (text.find('{'), text.rfind('}')) {
        text.replace_range(start..=end.max(start), "");
    }
    text.split(|letter: char| letter.is_whitespace() || letter == ',')
        .filter_map(|word| word.split_once('='))
        .filter(|(name, _)| *name != "ParameterValue")
        .map(|(name, value)| {
            if name.ends_with("ParameterKey") {
                value
            } else {
                name
            }
        })
        .map(|name| {
            name.trim_matches(|it: char| !it.is_ascii_alphanumeric())
                .to_owned()
        })
        .collect()
}

/// The name in `candidates` with the fewest letters to change, and their number.
pub(super) fn nearest<'k>(name: &str, candidates: &[&'k str]) -> Option<(usize, &'k str)> {
    let ways = candidates.iter().map(|it| (distance(name, it), *it));
    ways.min_by_key(|(letters, _)| *letters)
}

/// How many letters are added, removed or replaced between two names (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut corner = at;
        let mut before = at + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(to.chars()) {
            let above = *cell;
            *cell = (corner + usize::from(letter != other))
                .min(above + 1)
                .min(before + 1);
            (corner, before) = (above, *cell);
        }
        if let Some(first) = row.first_mut() {
            *first = at + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_of_every_form_are_found() {
        let samconfig = r#"
[default.deploy.parameters]
stack_name = "x=y"
parameter_overrides = "Text=dev ParameterKey=Key,ParameterValue=one"
[a.deploy.parameters.parameter_overrides]
# Comment = "no"
Table = "gold=1"
Settings = '''
{"A2A_RATE_TIERS": "gold=1000"}
'''
"Quoted" = "x"
[b.deploy.parameters]
parameter_overrides = [
  "Line=dev", 'Settings={"A2A_RATE_TIERS":"gold=1000,free=20"}',
  "Last=x"]
[c.deploy.parameters]
parameter_overrides = { Inline = "dev", Settings = '{"A": "b=c"}', End = "x" }
[own.deploy.parameters]
template_file = "infra/own.yaml"
parameter_overrides = "Other=x"
"#;
        let expected = "Text Key Table Settings Quoted Line Settings Last Inline Settings End";
        assert_eq!(parameters(samconfig).join(" "), expected);
    }

    #[test]
    fn the_nearest_name_is_that_with_the_fewest_changes() {
        let known = ["Stage", "AlarmEmail", "AlarmTopicArn"];
        assert_eq!(nearest("AlarmEmial", &known), Some((2, "AlarmEmail")));
        assert_eq!(nearest("Stages", &known), Some((1, "Stage")));
        assert_eq!(nearest("x", &[]), None);
    }
}
