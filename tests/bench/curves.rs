//! How costs grow: with the tasks in the table, the messages of a task, and the chunks of a
//! stream.

use crate::figures::{Figures, millis};
use crate::program::Program;
use crate::site::task_of;
use crate::{Failure, Site, events, full_table, tokens};
use bytes::Bytes;
use std::fmt::Write as _;
use std::path::Path;

const TASKS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
const MESSAGES: [usize; 4] = [1, 10, 100, 1_000];
const IN_CONTEXT: [usize; 3] = [1, 300, 1_200];
const CHUNKS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// Calls for one point of a curve.
const CALLS: usize = 20;

/// A line of a picture.
#[derive(Debug)]
struct Curve {
    name: &'static str,
    points: Vec<(usize, f64)>,
}

/// A picture: what grows, what is measured, and its lines.
#[derive(Debug)]
struct Picture {
    grows: &'static str,
    measured: &'static str,
    curves: Vec<Curve>,
}

/// All pictures.
#[derive(Debug)]
pub(crate) struct Curves(Vec<Picture>);

/// CPU of a call, in milliseconds.
async fn cpu(program: &mut Program, event: impl Fn(usize) -> Bytes) -> Result<f64, Failure> {
    program.call(event(usize::MAX)).await?;
    let before = program.cpu()?;
    for n in 0..CALLS {
        program.call(event(n)).await?;
    }
    Ok(millis(program.cpu()? - before) / CALLS as f64)
}

/// Measures all curves. Programs are in `programs`; `folder` is for a table of many tasks.
pub(crate) async fn measure(
    site: &Site,
    programs: &Path,
    folder: &Path,
) -> Result<Curves, Failure> {
    Ok(Curves(vec![
        chunks(site).await?,
        messages(site).await?,
        tasks(programs, folder).await?,
        contexts(programs).await?,
    ]))
}

async fn tasks(programs: &Path, folder: &Path) -> Result<Picture, Failure> {
    let data = folder.join("data");
    let site = Site::open(programs, Some(&data)).await?;
    let task = site.store_task().await?;
    let table = full_table::Table::open(&data, &task)?;
    let mut program = site.start("tasks-get", "tasks-get").await?;
    let (mut read, mut listed) = (Vec::new(), Vec::new());
    let mut had = 1;
    for wanted in TASKS {
        eprintln!("{wanted} tasks");
        table.fill(had..wanted)?;
        had = wanted;
        read.push((wanted, cpu(&mut program, |_| events::get(&task)).await?));
        listed.push((wanted, cpu(&mut program, |_| events::list()).await?));
    }
    Ok(Picture {
        grows: "tasks of the caller",
        measured: "CPU of a call, ms",
        curves: vec![
            Curve {
                name: "get",
                points: read,
            },
            Curve {
                name: "a page of 50 tasks",
                points: listed,
            },
        ],
    })
}

/// The time and not the CPU of the function, since the embedded database is not in its process.
async fn contexts(programs: &Path) -> Result<Picture, Failure> {
    eprintln!("a context of 1,200 tasks");
    let site = Site::open(programs, None).await?;
    let mut program = site.start("tasks-send", "tasks-send").await?;
    let mut points = Vec::new();
    let mut had = 0;
    for wanted in IN_CONTEXT {
        let mut figures = Figures::default();
        while had < wanted + CALLS {
            let call = program
                .call(events::send_in_context(&format!("c-{had}")))
                .await?;
            if had >= wanted {
                figures.add_time(call.whole);
            }
            had += 1;
        }
        points.push((wanted, figures.median()));
    }
    Ok(Picture {
        grows: "tasks of the context",
        measured: "ms of a call",
        curves: vec![Curve {
            name: "a send",
            points,
        }],
    })
}

async fn messages(site: &Site) -> Result<Picture, Failure> {
    eprintln!("a task of 1,000 messages");
    let mut program = site.start("stack-agent", "tasks-send").await?;
    let asked = program.call(events::send_plain("first", "what?")).await?;
    let task = task_of(&asked.body)?;
    let mut points = Vec::new();
    // A turn adds a message of the user and one of the agent.
    let mut had = 1;
    let mut number = 0;
    for wanted in MESSAGES {
        let mut figures = Figures::default();
        while had <= wanted {
            number += 1;
            let before = program.cpu()?;
            program
                .call(events::answer(&format!("m-{number}"), &task, "what else?"))
                .await?;
            if had * 10 >= wanted * 9 {
                figures.add(millis(program.cpu()? - before));
            }
            had += 2;
        }
        points.push((wanted, figures.median()));
    }
    Ok(Picture {
        grows: "messages of the task",
        measured: "CPU of a turn, ms",
        curves: vec![Curve {
            name: "an answer",
            points,
        }],
    })
}

async fn chunks(site: &Site) -> Result<Picture, Failure> {
    let mut program = site.start("stack-agent", "tasks-stream").await?;
    program.call(events::stream("warm", "chunks 3")).await?;
    let (mut time, mut cost) = (Vec::new(), Vec::new());
    for count in CHUNKS {
        eprintln!("a stream of {count} chunks");
        let (before, spent) = (program.cpu()?, tokens::units(&program).await?);
        program
            .call(events::stream(
                &format!("c-{count}"),
                &format!("chunks {count}"),
            ))
            .await?;
        time.push((count, millis(program.cpu()? - before)));
        cost.push((count, tokens::units(&program).await? - spent));
    }
    Ok(Picture {
        grows: "chunks in a burst",
        measured: "of the stream",
        curves: vec![
            Curve {
                name: "CPU, ms",
                points: time,
            },
            Curve {
                name: "write units",
                points: cost,
            },
        ],
    })
}

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 50.0;
const TOP: f64 = 30.0;
const COLOURS: [&str; 2] = ["#1f6feb", "#bf5b04"];

impl Curves {
    /// The figures as tables.
    pub(crate) fn text(&self) -> String {
        let mut text = "![Curves](performance.svg)\n\n".to_owned();
        for Picture {
            grows,
            measured,
            curves,
        } in &self.0
        {
            let sizes = curves.first().map(|curve| &curve.points);
            let sizes: Vec<String> = sizes
                .into_iter()
                .flatten()
                .map(|(n, _)| n.to_string())
                .collect();
            let _ = writeln!(
                text,
                "| {grows} | {} |\n|---|{}",
                sizes.join(" | "),
                "---|".repeat(sizes.len())
            );
            for curve in curves {
                let values: Vec<String> = curve
                    .points
                    .iter()
                    .map(|(_, y)| format!("{y:.2}"))
                    .collect();
                let _ = writeln!(
                    text,
                    "| {}, {measured} | {} |",
                    curve.name,
                    values.join(" | ")
                );
            }
            text.push('\n');
        }
        text
    }

    /// The pictures side by side, with logarithmic axes.
    pub(crate) fn svg(&self) -> String {
        let step = LEFT + WIDTH + 30.0;
        let (width, height) = (step * self.0.len() as f64, TOP + HEIGHT + 60.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        for (n, picture) in self.0.iter().enumerate() {
            picture.draw(&mut svg, LEFT + step * n as f64);
        }
        svg + "</svg>\n"
    }
}

/// Where a picture is, and the range of its logarithmic axes.
#[derive(Debug, Clone, Copy)]
struct Axes {
    left: f64,
    low: f64,
    high: f64,
    last: f64,
}

impl Axes {
    fn log(value: f64) -> f64 {
        value.max(0.01).log10()
    }

    fn bottom() -> f64 {
        TOP + HEIGHT
    }

    /// The place of a point.
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let across = self.left + WIDTH * Self::log(x) / self.last;
        let up = Self::bottom() - HEIGHT * (Self::log(y) - self.low) / (self.high - self.low);
        (across, up)
    }
}

impl Picture {
    fn frame(&self, left: f64) -> Axes {
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        let heights = || all().map(|(_, y)| Axes::log(*y));
        let low = heights().fold(f64::MAX, f64::min).floor();
        Axes {
            left,
            low,
            high: heights().fold(f64::MIN, f64::max).ceil().max(low + 1.0),
            last: all().map(|(x, _)| Axes::log(*x as f64)).fold(1.0, f64::max),
        }
    }

    fn draw(&self, svg: &mut String, left: f64) {
        let frame = self.frame(left);
        self.draw_axes(svg, &frame);
        for (curve, colour) in self.curves.iter().zip(COLOURS) {
            let place = |(x, y): &(usize, f64)| frame.at(*x as f64, *y);
            let points: Vec<String> = curve
                .points
                .iter()
                .map(place)
                .map(|(across, up)| format!("{across:.1},{up:.1}"))
                .collect();
            let end = curve.points.last().map(place);
            let (across, up) = end.unwrap_or((left, TOP));
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
                 <text x=\"{across:.0}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"{colour}\">{}</text>",
                points.join(" "),
                up - 8.0,
                curve.name,
            );
        }
    }

    fn draw_axes(&self, svg: &mut String, frame: &Axes) {
        let (left, bottom) = (frame.left, Axes::bottom());
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {TOP}V{bottom}H{}\" fill=\"none\" stroke=\"#888\"/>\n\
             <text x=\"{left}\" y=\"{}\">{}</text>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            left + WIDTH,
            TOP - 12.0,
            self.measured,
            left + WIDTH / 2.0,
            bottom + 34.0,
            self.grows,
        );
        let sizes = self.curves.first().map(|curve| &curve.points);
        for (x, _) in sizes.into_iter().flatten() {
            let (across, _) = frame.at(*x as f64, 1.0);
            let below = bottom + 16.0;
            let _ = writeln!(
                svg,
                "<text x=\"{across:.0}\" y=\"{below}\" text-anchor=\"middle\">{x}</text>"
            );
        }
        let mut exponent = frame.low;
        while exponent <= frame.high {
            let value = 10_f64.powf(exponent);
            let (beside, up) = (left - 6.0, frame.at(1.0, value).1 + 4.0);
            let _ = writeln!(
                svg,
                "<text x=\"{beside}\" y=\"{up:.0}\" text-anchor=\"end\">{value}</text>"
            );
            exponent += 1.0;
        }
    }
}
