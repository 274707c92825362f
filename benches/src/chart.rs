//! Charts: rate and CPU by the number of users, and a constant load over time.

use std::fmt::Write as _;

use crate::{
    report::grouped,
    results::{Results, short},
};

const STYLE: &str = "<style>\
text{font:12px system-ui,sans-serif;fill:#444}.title{font-weight:600;fill:#222}.grid{stroke:#ddd}\
.line{fill:none;stroke-width:2}.bare{stroke:#888}.sqlite{stroke:#0b7a75}.postgres{stroke:#c2571a}\
.dot.bare{fill:#888}.dot.sqlite{fill:#0b7a75}.dot.postgres{fill:#c2571a}\
@media(prefers-color-scheme:dark){text{fill:#bbb}.title{fill:#eee}.grid{stroke:#444}\
.sqlite{stroke:#3fc1b8}.postgres{stroke:#f0935a}.dot.sqlite{fill:#3fc1b8}.dot.postgres{fill:#f0935a}}\
</style>";
const ENGINES: [&str; 3] = ["bare", "sqlite", "postgres"];
const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 34.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 34.0;

/// A line of a panel: its CSS class and its points.
type Line = (&'static str, Vec<(f64, f64)>);

/// One panel of a chart.
struct Panel {
    title: String,
    /// The labels below the axis: a position on it, and a text.
    marks: Vec<(f64, String)>,
    lines: Vec<Line>,
}

impl Panel {
    fn draw(&self, column: usize, row: usize, out: &mut String) {
        let (across, down) = (column as f64 * WIDTH, row as f64 * HEIGHT);
        let all = || self.lines.iter().flat_map(|(_, points)| points.iter());
        let positions = || all().map(|(x, _)| *x).chain(self.marks.iter().map(|(x, _)| *x));
        let low = positions().fold(f64::INFINITY, f64::min);
        let high = positions().fold(f64::NEG_INFINITY, f64::max);
        let top = round_up(all().map(|(_, y)| *y).fold(0.0, f64::max));
        let x = |value: f64| {
            let part = if high > low { (value - low) / (high - low) } else { 0.5 };
            across + LEFT + part * (WIDTH - LEFT - RIGHT)
        };
        let y = |value: f64| down + TOP + (1.0 - value / top) * (HEIGHT - TOP - BOTTOM);
        let _ = write!(
            out,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            across + 8.0,
            down + 18.0,
            self.title
        );
        for step in 0..=2 {
            let value = top * f64::from(step) / 2.0;
            let (at, begin, end) = (y(value), across + LEFT, across + WIDTH - RIGHT);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{begin:.1} {at:.1}H{end:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                begin - 6.0,
                at + 4.0,
                axis(value)
            );
        }
        for (position, text) in &self.marks {
            let (at, below) = (x(*position), down + HEIGHT - BOTTOM + 17.0);
            let _ = write!(out, "<text x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{text}</text>");
        }
        for (class, points) in &self.lines {
            let path: Vec<String> =
                points.iter().map(|(px, py)| format!("{:.1} {:.1}", x(*px), y(*py))).collect();
            if path.is_empty() {
                continue;
            }
            let _ = write!(out, "<path class=\"line {class}\" d=\"M{}\"/>", path.join("L"));
            // a line of many points needs no marks
            for (px, py) in points.iter().filter(|_| points.len() <= 12) {
                let _ = write!(
                    out,
                    "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}</title></circle>",
                    x(*px),
                    y(*py),
                    short(*py)
                );
            }
        }
    }
}

/// The next round number.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(value)
}

fn axis(value: f64) -> String {
    if value >= 10_000.0 { format!("{} k", short(value / 1000.0)) } else { short(value) }
}

fn render(title: &str, columns: usize, panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(columns);
    let (width, height) = (columns as f64 * WIDTH, rows as f64 * HEIGHT + 30.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\
         {STYLE}"
    );
    for (number, panel) in panels.iter().enumerate() {
        panel.draw(number % columns, number / columns, &mut out);
    }
    for (number, engine) in ENGINES.into_iter().enumerate() {
        let (x, y) = (12.0 + number as f64 * 110.0, height - 10.0);
        let _ = write!(
            out,
            "<path class=\"line {engine}\" d=\"M{x} {:.1}h18\"/><text x=\"{:.1}\" y=\"{y:.1}\">{engine}</text>",
            y - 4.0,
            x + 24.0
        );
    }
    out.push_str("</svg>\n");
    out
}

/// The chart of growth: rates above, CPU below, by the number of users.
pub fn growth(results: &Results) -> String {
    let columns = [
        ("read by id, 64 clients", "reads"),
        ("page of 50, first, wide", "first pages"),
        ("page of 50, 10,000th, wide", "10,000th pages"),
        ("create, 64 clients", "creates"),
        ("list all users", "rows of a list"),
    ];
    let kinds = [(["rate", "rows"], "a second"), (["cpu_us", "cpu_us"], "server CPU, us each")];
    let sizes = results.sizes();
    let marks: Vec<(f64, String)> =
        sizes.iter().map(|users| ((*users as f64).log10(), grouped(*users))).collect();
    let mut panels = Vec::new();
    for (names, unit) in kinds {
        for (workload, title) in columns {
            let lines = ENGINES.into_iter().map(|engine| {
                let run = |users: u64| results.run_of(workload, engine, users);
                // what another run measured does not show growth
                let run_of_largest = sizes.last().and_then(|users| run(*users));
                let comparable = sizes.iter().filter(|users| run(**users) == run_of_largest);
                let points = comparable.filter_map(|users| {
                    let of = |name| results.median(workload, engine, *users, name);
                    Some(((*users as f64).log10(), names.into_iter().find_map(of)?))
                });
                (engine, points.collect())
            });
            panels.push(Panel {
                title: format!("{title}: {unit}"),
                marks: marks.clone(),
                lines: lines.collect(),
            });
        }
    }
    render("Rate and server CPU by the number of users", columns.len(), &panels)
}

/// The chart of constant creates: rate, latency and log over time.
pub fn sustained(results: &Results) -> String {
    let kinds = [
        ("rate", "creates a second"),
        ("p99_ms", "p99, ms"),
        ("wal_mib", "log, MiB"),
        ("rss_mib", "resident, MiB"),
    ];
    let largest = results.timelines.iter().map(|line| line.users).max().unwrap_or(0);
    let panels: Vec<Panel> = kinds
        .into_iter()
        .map(|(figure, title)| {
            let mut last = 0.0_f64;
            let lines = ENGINES.into_iter().map(|engine| {
                let of = results.timelines.iter().find(|line| line.engine == engine && line.users == largest);
                let intervals = of.map_or(&[][..], |line| &line.intervals);
                let points: Vec<(f64, f64)> = intervals
                    .iter()
                    .filter_map(|interval| Some((*interval.get("second")?, *interval.get(figure)?)))
                    .collect();
                last = points.iter().map(|(second, _)| *second).fold(last, f64::max);
                (engine, points)
            });
            let lines = lines.collect();
            let marks = vec![(0.0, "0 s".to_owned()), (last, format!("{last:.0} s"))];
            Panel { title: title.to_owned(), marks, lines }
        })
        .collect();
    render("Constant creates from 64 connections", kinds.len(), &panels)
}
