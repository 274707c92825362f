//! A filtered, sorted page of 50: the first, and one far behind it.

use super::{Bench, always};
use crate::{
    client::Client,
    fault::{Result, fault},
    load::Maker,
    target::{Engine, Target, USERS},
};

/// The narrow filter: users whose family name begins with one letter.
const NARROW: &str = "filter=lastName%20sw%20%22a%22&sortBy=lastName";
/// The wide filter: nearly all users, so that there is a 10,000th page of them.
const WIDE: &str = "filter=lastName%20ge%20%22b%22&sortBy=lastName";
/// The number of users before the far page.
const USERS_BEFORE_FAR_PAGE: u64 = 500_000;

/// Reads pages.
pub async fn run(bench: &mut Bench) -> Result<()> {
    let first = |query: &str| format!("{USERS}?{query}&count=50");
    pages(bench, "page of 50, first, narrow", |_| first(NARROW)).await?;
    pages(bench, "page of 50, first, wide", |_| first(WIDE)).await?;
    let steps = USERS_BEFORE_FAR_PAGE.min(bench.users / 2).div_ceil(1000).saturating_sub(1).max(1);
    let mut far_paths = Vec::new();
    for target in bench.engines() {
        let cursor = read_cursor_after(&target, steps, 1000.min(bench.users / 2)).await?;
        far_paths.push((target.engine, format!("{USERS}?{WIDE}&count=50&cursor={cursor}")));
    }
    pages(bench, "page of 50, 10,000th, wide", |engine| {
        far_paths.iter().find(|(of, _)| *of == engine).map(|(_, path)| path.clone()).unwrap_or_default()
    })
    .await
}

async fn pages(bench: &mut Bench, name: &str, path: impl Fn(Engine) -> String) -> Result<()> {
    let engines = bench.engines();
    let engine = engines.first().ok_or_else(|| fault("there is no engine to measure"))?.engine;
    let length = bench.length_of(&path(engine)).await?;
    let makers: Vec<Maker> = bench
        .targets()
        .into_iter()
        .map(|target| {
            let path = match target.engine {
                Engine::Bare => format!("/{length}"),
                engine => path(engine),
            };
            always(target.request("GET", &path, b""))
        })
        .collect();
    bench.compare(name, bench.plan(16, 200), &makers).await
}

/// Reads some large pages; returns the cursor after them.
async fn read_cursor_after(target: &Target, steps: u64, count: u64) -> Result<String> {
    let mut client = Client::connect(target.address).await?;
    let mut path = format!("{USERS}?{WIDE}&count={count}");
    let mut cursor = None;
    for _ in 0..steps {
        target.call_on(&mut client, "GET", &path, b"", 200).await?;
        let next_cursor = next_cursor(&client).ok_or_else(|| fault("a page has no Link to the next"))?;
        path = format!("{USERS}?{WIDE}&count={count}&cursor={next_cursor}");
        cursor = Some(next_cursor);
    }
    cursor.ok_or_else(|| fault("there is no page after the first"))
}

/// The cursor after the last answered page, if others follow.
pub fn next_cursor(client: &Client) -> Option<String> {
    let after = client.header("link")?.split("cursor=").nth(1)?;
    let end = after.find(['&', '>']).unwrap_or(after.len());
    after.get(..end).map(str::to_owned)
}
