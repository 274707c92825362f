//! The metrics for operators: their cost in the database.

use std::collections::BTreeMap;

use chancery::figures;
use chancery_record::Value;
use chancery_store::{Error, Figure, Mode};
use chancery_testkit::{Engine, World, on_both_engines};

/// Tables that grow with people, their history or pending work: they are read up to a bound.
const BOUNDED: [&str; 5] =
    ["event_delivery", "event_pending", "identity_revocation", "logout_delivery", "mail_message"];
/// Tables with as many rows as stores, certificates and sources of metadata: they may be read whole.
const SMALL: [&str; 5] =
    ["audit_tree", "cert_store", "event_trail", "passkey_trust", "passkey_trust_refresh"];

/// The lines of the plan of a statement. On PostgreSQL as if the tables were large.
async fn plan(world: &World, text: String) -> Vec<String> {
    let engine = world.engine;
    let read = world.app.store.run("Explain", Mode::Long, None, move |tx| {
        let (explain, column) = match engine {
            Engine::Sqlite => ("EXPLAIN QUERY PLAN", 3),
            Engine::Postgres => ("EXPLAIN (COSTS OFF)", 0),
        };
        if engine == Engine::Postgres {
            tx.query("SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)", &[], |_| Ok(()))?;
        }
        let mut lines = Vec::new();
        tx.query(&format!("{explain} {text}"), &[], |row| {
            lines.push(row.text(column)?.to_owned());
            Ok(())
        })?;
        Ok::<_, Error>(lines)
    });
    read.await.unwrap()
}

/// The tables that a plan reads, each with the line that reads it and those around it.
fn reads(plan: &[String], engine: Engine) -> Vec<(String, String, String)> {
    let mut reads = Vec::new();
    for (at, line) in plan.iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let table = match engine {
            Engine::Sqlite => {
                words.first().filter(|word| ["SCAN", "SEARCH"].contains(word)).and(words.get(1))
            }
            Engine::Postgres if line.contains("Scan") => {
                words.iter().position(|word| *word == "on").and_then(|on| words.get(on + 1))
            }
            Engine::Postgres => None,
        };
        let around = plan[at.saturating_sub(1)..(at + 2).min(plan.len())].concat();
        reads.extend(table.map(|table| ((*table).to_owned(), line.clone(), around)));
    }
    reads
}

on_both_engines! {
    /// Section 13: no scrape walks a table: only small ones are read whole, mails by their index, and nothing of
    /// people or of their history.
    async fn no_scrape_walks_a_table(world: World) {
        let mut all = Vec::new();
        for query in figures().iter().copied().flatten().filter_map(Figure::query) {
            let plan = plan(&world, query).await;
            all.extend(reads(&plan, world.engine).into_iter().map(|read| (read, plan.clone())));
        }
        let mut tables: BTreeMap<&str, usize> = BTreeMap::new();
        for ((table, line, around), plan) in &all {
            // not tables, but derived results
            if ["counted", "ends", "CONSTANT"].contains(&table.as_str()) {
                continue;
            }
            *tables.entry(table).or_default() += 1;
            assert!(BOUNDED.contains(&table.as_str()) || SMALL.contains(&table.as_str()), "{table}: {plan:#?}");
            if table == "mail_message" {
                assert!(line.contains("mail_message__state__due_on"), "{plan:#?}");
            }
            // a condition without an index would walk rows that do not match
            let is_bounded = (around.contains("Limit") || around.contains("CO-ROUTINE counted")) && !around.contains("Filter");
            assert!(is_bounded || !BOUNDED.contains(&table.as_str()), "{line}: {plan:#?}");
        }
        assert!(BOUNDED.iter().chain(&SMALL).all(|table| tables.contains_key(table)), "{tables:?}");
    }

    /// A metric that cannot be read is missing, is counted and is logged; the others are unchanged.
    async fn a_figure_that_cannot_be_read_is_missing_and_counted(world: World) {
        let text = async || String::from_utf8(world.admin.get("/metrics").await.is(200).bytes.to_vec()).unwrap();
        let has = |text: &str, start: &str| text.lines().any(|line| line.starts_with(start));
        let (broken, sound) = ("chancery_passkey_trust_failures ", "chancery_mails_waiting ");
        let failed = "chancery_figures_failed_total{figure=\"passkey_trust_failures\"} 1";
        let before = text().await;
        assert!(has(&before, broken) && has(&before, sound) && !has(&before, "chancery_figures_failed_total{"), "{before}");
        world.sql(vec![("ALTER TABLE passkey_trust_refresh RENAME TO elsewhere", vec![])]).await;
        let during = text().await;
        assert!(!has(&during, broken) && has(&during, sound) && has(&during, failed), "{during}");
        world.sql(vec![("ALTER TABLE elsewhere RENAME TO passkey_trust_refresh", vec![])]).await;
        let after = text().await;
        assert!(has(&after, broken) && has(&after, failed), "{after}");
    }

    /// Section 13: waiting rows are counted up to 10,000.
    async fn waiting_rows_are_counted_up_to_a_bound(world: World) {
        // their trail's first position is taken, so that they continue to wait
        let many = "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 10050) \
                    INSERT INTO event_pending (event, trail) SELECT -number, ?1 FROM numbers";
        let taken = "INSERT INTO event_place (trail, position, event) VALUES (?1, 1, 0)";
        world.sql(vec![(taken, vec![Value::Int(-9)]), (many, vec![Value::Int(-9)])]).await;
        let metrics = world.admin.get("/metrics").await.is(200);
        let text = String::from_utf8(metrics.bytes.to_vec()).unwrap();
        assert!(text.lines().any(|line| line == "chancery_events_unplaced 10000"), "{text}");
    }
}
