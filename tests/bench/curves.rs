//! How costs grow: with the tasks in the table, the messages of a task, and the chunks of a
//! stream.

use crate::figures::{Figures, millis};
use crate::program::Program;
use crate::{Failure, Site, events, tokens};
use a2a_lambda::store::aws::AwsClients;
use a2a_local::embedded::TABLE;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use bytes::Bytes;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The embedded database takes more than ten minutes for 100,000.
const TASKS: [usize; 4] = [10, 100, 1_000, 10_000];
const MESSAGES: [usize; 4] = [1, 10, 100, 1_000];
const CHUNKS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// Calls for one point of a curve.
const CALLS: usize = 20;
/// DynamoDB: at most 25 items a batch.
const BATCH: usize = 25;

type Item = HashMap<String, AttributeValue>;

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

/// Measures all curves. `task` is the id of a stored task.
pub(crate) async fn measure(site: &Site, task: &str) -> Result<Curves, Failure> {
    Ok(Curves(vec![
        chunks(site).await?,
        messages(site).await?,
        tasks(site, task).await?,
    ]))
}

fn failed(error: impl std::fmt::Debug) -> Failure {
    Failure::Program(format!("{error:?}"))
}

/// Copies of a task of the table under new ids, so that the owner has `wanted` more.
async fn copy(
    clients: &AwsClients,
    item: &Item,
    id: &str,
    (from, wanted): (usize, usize),
) -> Result<(), Failure> {
    let renamed = |n: usize| -> Item {
        let new = format!("task-{n:032x}");
        let value = |value: &AttributeValue| match value {
            AttributeValue::S(text) => AttributeValue::S(text.replace(id, &new)),
            other => other.clone(),
        };
        item.iter()
            .map(|(name, held)| (name.clone(), value(held)))
            .collect()
    };
    for batch in (from..wanted).collect::<Vec<_>>().chunks(BATCH) {
        let mut writes = Vec::new();
        for n in batch {
            let put = PutRequest::builder().set_item(Some(renamed(*n))).build();
            let put = put.map_err(failed)?;
            writes.push(WriteRequest::builder().put_request(put).build());
        }
        let write = clients.dynamodb.batch_write_item();
        write
            .request_items(TABLE, writes)
            .send()
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// The item of a task.
async fn item_of(clients: &AwsClients, task: &str) -> Result<Item, Failure> {
    let mut start = None;
    loop {
        let scan = clients.dynamodb.scan().table_name(TABLE);
        let scan = scan.filter_expression("contains(PK, :id)");
        let scan = scan.expression_attribute_values(":id", AttributeValue::S(task.to_owned()));
        let found = scan.set_exclusive_start_key(start).send().await;
        let found = found.map_err(failed)?;
        if let Some(item) = found.items().first() {
            return Ok(item.clone());
        }
        start = found.last_evaluated_key;
        if start.is_none() {
            return Err(failed("no task to copy"));
        }
    }
}

async fn tasks(site: &Site, task: &str) -> Result<Picture, Failure> {
    let clients = AwsClients::connect(site.embedded.endpoints()).await;
    let mut program = site.start("tasks-get", "tasks-get").await?;
    let item = item_of(&clients, task).await?;
    let (mut read, mut listed) = (Vec::new(), Vec::new());
    let mut had = 0;
    for wanted in TASKS {
        eprintln!("{wanted} tasks");
        copy(&clients, &item, task, (had, wanted)).await?;
        had = wanted;
        read.push((wanted, cpu(&mut program, |_| events::get(task)).await?));
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

async fn messages(site: &Site) -> Result<Picture, Failure> {
    eprintln!("a task of 1,000 messages");
    let mut program = site.start("stack-agent", "tasks-send").await?;
    let asked = program.call(events::send_plain("first", "what?")).await?;
    let response: Value = serde_json::from_slice(&asked.body)?;
    let task: Value = serde_json::from_str(response["body"].as_str().unwrap_or_default())?;
    let task = task["task"]["id"].as_str().unwrap_or_default().to_owned();
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
        let units = |log: &std::path::Path| -> Result<f64, Failure> {
            Ok(tokens::units(&std::fs::read_to_string(log)?))
        };
        let (before, spent) = (program.cpu()?, units(&program.log)?);
        program
            .call(events::stream(
                &format!("c-{count}"),
                &format!("chunks {count}"),
            ))
            .await?;
        time.push((count, millis(program.cpu()? - before)));
        cost.push((count, units(&program.log)? - spent));
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
