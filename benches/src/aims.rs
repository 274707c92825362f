//! The aims of `docs/performance.md`: which figure of which workload is compared with what, and the bound that it is to reach.

use crate::{
    results::{Results, short},
    target::Engine,
    workloads::{COST, administrators, batch, create, events, keycloak, password, scim, sign_in},
};

/// What a figure is compared with.
#[derive(Clone, Copy)]
enum Against {
    /// Nothing: the figure itself.
    Itself,
    /// The same figure of another engine or peer, in the same round.
    Peer(&'static str),
    /// The same figure of another workload on the same engine.
    Workload(&'static str),
    /// The same figure with the fewest users.
    Fewest,
}

/// The bound of a figure.
#[derive(Clone, Copy)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// At least this where an fsync costs 0.1 ms or less, and this where it costs 2 ms or more.
    ByDisk(f64, f64),
    /// At most this with 1,000 users, and this with 1,000,000.
    BySize(f64, f64),
    /// No bound: the figure is only reported.
    None,
}

/// One aim of the project.
pub struct Aim {
    /// The workload's name.
    pub workload: &'static str,
    /// The engine.
    pub engine: &'static str,
    /// What is measured, in the table.
    pub about: &'static str,
    /// The figure's name.
    figure: &'static str,
    against: Against,
    /// What it is to reach.
    pub bound: Bound,
}

const READS: [&str; 4] = [
    "read by id, 16 clients",
    "read by id, 64 clients",
    "read by login name, 16 clients",
    "read by login name, 64 clients",
];
const PAGES: [&str; 3] =
    ["page of 50, first, narrow", "page of 50, first, wide", "page of 50, 10,000th, wide"];
const LIST: &str = "list all users";
/// The ratio up to which figures count as the same: within a third, because the machine is not quiet.
const SAME: f64 = 1.33;

const fn aim(
    workload: &'static str,
    engine: &'static str,
    about: &'static str,
    figure: &'static str,
    against: Against,
    bound: Bound,
) -> Aim {
    Aim { workload, engine, about, figure, against, bound }
}

pub fn aims() -> Vec<Aim> {
    use Against::{Fewest, Itself, Peer};
    use Bound::{AtLeast, AtMost, ByDisk, BySize};
    let mut aims = Vec::new();
    for workload in READS {
        aims.push(aim(workload, "sqlite", "rate / bare", "rate", Peer("bare"), AtLeast(0.40)));
        aims.push(aim(workload, "sqlite", "CPU / bare", "cpu_us", Peer("bare"), BySize(3.2, 4.2)));
        aims.push(aim(workload, "sqlite", "CPU / fewest users", "cpu_us", Fewest, AtMost(SAME)));
        aims.push(aim(workload, "postgres", "rate / bare", "rate", Peer("bare"), AtLeast(0.15)));
    }
    for workload in PAGES {
        aims.push(aim(workload, "sqlite", "CPU / bare", "cpu_us", Peer("bare"), AtMost(30.0)));
        aims.push(aim(workload, "sqlite", "CPU / fewest users", "cpu_us", Fewest, AtMost(SAME)));
        aims.push(aim(workload, "postgres", "CPU / bare", "cpu_us", Peer("bare"), AtMost(30.0)));
        aims.push(aim(workload, "postgres", "CPU / fewest users", "cpu_us", Fewest, AtMost(SAME)));
    }
    let one = "rate / one commit each";
    aims.push(aim(create::NAME, "sqlite", one, "rate", Peer("sqlite alone"), ByDisk(2.9, 7.0)));
    aims.push(aim(create::NAME, "sqlite", "p99 / p50", "p99_to_p50", Itself, AtMost(5.0)));
    aims.push(aim(create::NAME, "sqlite", "rate / fewest users", "rate", Fewest, AtLeast(1.0 / SAME)));
    let awaited = "rate / awaited one by one";
    aims.push(aim(create::NAME, "postgres", awaited, "rate", Peer("postgres alone"), AtLeast(1.1)));
    let alone = "rate / engine alone";
    aims.push(aim(batch::NAME, "sqlite", alone, "rows", Peer("sqlite alone"), AtLeast(0.5)));
    aims.push(aim(
        batch::NAME,
        "postgres",
        "rate / row by row",
        "rows",
        Peer("postgres alone"),
        AtLeast(2.0),
    ));
    for (engine, peer) in [("sqlite", "sqlite alone"), ("postgres", "postgres alone")] {
        let (name, label) = (administrators::NAME, "answers that are no success");
        aims.push(aim(name, engine, label, "refused", Itself, AtMost(0.0)));
        aims.push(aim(name, engine, "p99 / p50", "p99_to_p50", Itself, AtMost(10.0)));
        aims.push(aim(name, engine, "rate / the same rows alone", "rate", Peer(peer), AtLeast(0.5)));
    }
    let repeated = "repeated of 100 commits";
    for (name, most) in [(administrators::NAME, 5.0), (administrators::TWO_PROCESSES, 1.0)] {
        aims.push(aim(name, "postgres", repeated, "repeated_percent", Itself, AtMost(most)));
    }
    for engine in ["sqlite", "postgres"] {
        let wait = "longest wait of others / batch";
        aims.push(aim(batch::WITH_WRITERS, engine, wait, "wait_to_batch", Itself, AtMost(1.1)));
    }
    for (engine, least) in [("sqlite", 0.9), ("postgres", 0.8)] {
        let left = "rate / what readers leave";
        aims.push(aim(password::NAME, engine, left, "rate_to_left", Itself, AtLeast(least)));
        aims.push(aim(
            password::READS_WITH_VERIFICATIONS,
            engine,
            "p99 / with nothing beside",
            "p99_to_quiet",
            Itself,
            AtMost(2.0),
        ));
    }
    aims.push(aim(LIST, "sqlite", alone, "rows", Peer("sqlite alone"), AtLeast(0.5)));
    aims.push(aim(LIST, "postgres", alone, "rows", Peer("postgres alone"), AtLeast(0.5)));
    for engine in ["sqlite", "postgres"] {
        aims.push(aim(LIST, engine, "memory grown, MiB", "grown_mib", Itself, AtMost(32.0)));
        aims.push(aim("group, read", engine, "us a member", "us_member", Itself, AtMost(1.5)));
        aims.push(aim("start and idle", engine, "ready after, ms", "ready_ms", Itself, AtMost(100.0)));
        aims.push(aim("start and idle", engine, "resident, MiB", "rss_mib", Itself, AtMost(30.0)));
        aims.push(aim("start and idle", engine, "CPU when idle, %", "idle_cpu_percent", Itself, AtMost(0.2)));
    }
    aims.extend(sign_in_aims());
    for (engine, name, bound) in keycloak::AIMS {
        aims.push(aim(name, engine.name(), "CPU / Keycloak", COST, Peer("Keycloak"), bound));
    }
    let password = sign_in::keycloak::PASSWORD;
    for (engine, idle, stored) in [
        ("sqlite", AtMost(0.1), AtMost(2.0)),
        ("postgres", AtMost(0.3), AtMost(2.0)),
        ("Keycloak", Bound::None, Bound::None),
    ] {
        if engine != "Keycloak" {
            aims.push(aim(password, engine, "rate / Keycloak", "rate", Peer("Keycloak"), AtLeast(1.8)));
        }
        aims.push(aim(keycloak::IDLE, engine, "CPU with the database, %", "cpu_percent", Itself, idle));
        aims.push(aim(keycloak::STORED, engine, "KiB a created user", "kib", Itself, stored));
    }
    aims.extend(event_aims());
    aims.extend(scim_aims());
    aims
}

fn scim_aims() -> Vec<Aim> {
    use Against::{Itself, Peer};
    use Bound::AtMost;
    let mut aims = Vec::new();
    for interface in [scim::Interface::Scim(Engine::Sqlite), scim::Interface::Scim(Engine::Postgres)] {
        let (engine, other) = (interface.name(), interface.other().name());
        // of two bounds the first is the embedded engine's
        let of = |sqlite, postgres| AtMost(if engine == "sqlite" { sqlite } else { postgres });
        aims.push(aim(scim::users::FIND, engine, "p50, ms", "p50_ms", Itself, of(1.0, 3.0)));
        let cpu = "CPU / version 2";
        aims.push(aim(scim::users::READ, engine, cpu, "cpu_us", Peer(other), AtMost(1.3)));
        for (name, bound) in [(scim::users::CREATE, 0.8), (scim::users::ENTERPRISE, 0.35)] {
            let rate = "rate / version 2";
            aims.push(aim(name, engine, rate, "rate", Peer(other), Bound::AtLeast(bound)));
        }
        for (_, name) in scim::groups::ADD_ONE {
            aims.push(aim(name, engine, "p50, ms", "p50_ms", Itself, of(3.0, 8.0)));
        }
        aims.push(aim(scim::groups::ADD_MANY, engine, "p50, ms", "p50_ms", Itself, of(8.0, 60.0)));
        aims.push(aim(scim::groups::REPLACE, engine, "p50, ms", "p50_ms", Itself, of(60.0, 200.0)));
        aims.push(aim(scim::lists::PAGE, engine, "p50, ms", "p50_ms", Itself, of(3.0, 8.0)));
        let import = scim::lists::IMPORT;
        aims.push(aim(import, engine, "us a user", "us_user", Itself, of(60.0, 120.0)));
        aims.push(aim(import, engine, "memory grown, MiB", "grown_mib", Itself, AtMost(32.0)));
        for name in [scim::groups::CONCURRENT, scim::groups::CONCURRENT_EMPTY] {
            let label = "answers that are no success";
            aims.push(aim(name, engine, label, "refused", Itself, AtMost(0.0)));
            let label = "repeated of 100 commits";
            aims.push(aim(name, engine, label, "repeated_percent", Itself, AtMost(1.0)));
        }
    }
    aims
}

fn event_aims() -> Vec<Aim> {
    use Against::Itself;
    use Bound::{AtLeast, AtMost};
    let mut aims = Vec::new();
    for (engine, feed_rate) in [("sqlite", 20_000.0), ("postgres", 8_000.0)] {
        let label = "rate / with nobody listening";
        aims.push(aim(events::WITH_WEBHOOKS, engine, label, "rate_to_quiet", Itself, AtLeast(0.9)));
        for (about, figure, bound) in [
            ("feed p50, ms", "feed_p50_ms", 150.0),
            ("feed p99, ms", "feed_p99_ms", 500.0),
            ("receiver p50, ms", "webhook_p50_ms", 250.0),
            ("receiver p99, ms", "webhook_p99_ms", 1000.0),
        ] {
            aims.push(aim(events::LAG, engine, about, figure, Itself, AtMost(bound)));
        }
        if engine == "postgres" {
            let label = "rate / where nobody places";
            aims.push(aim(
                events::positions::WITHOUT_POSITIONS,
                engine,
                label,
                "placed_to_rate",
                Itself,
                AtLeast(0.98),
            ));
            for (about, figure, bound) in
                [("feed p50, ms", "feed_p50_ms", 150.0), ("feed p99, ms", "feed_p99_ms", 500.0)]
            {
                aims.push(aim(events::LAG_TWO_PROCESSES, engine, about, figure, Itself, AtMost(bound)));
            }
        }
        aims.push(aim(
            events::positions::CATCH_UP,
            engine,
            "caught up, s",
            "read_seconds",
            Itself,
            AtMost(30.0),
        ));
        aims.push(aim(events::FEED, engine, "events a second", "rate", Itself, AtLeast(feed_rate)));
        for (workload, bound) in
            [(events::BACKLOG_ONE, 800.0), (events::BACKLOG_MANY, 1500.0), (events::BACKLOG_HANGING, 1425.0)]
        {
            aims.push(aim(workload, engine, "deliveries a second", "rate", Itself, AtLeast(bound)));
        }
        aims.push(aim(events::STREAMS, engine, "events a second and stream", "each", Itself, AtLeast(95.0)));
        aims.push(aim(events::STREAMS, engine, "memory, MiB", "memory_mib", Itself, AtMost(64.0)));
        let stored = events::stored::NAME;
        aims.push(aim(stored, engine, "metrics p50, ms", "metrics_p50_ms", Itself, AtMost(10.0)));
        aims.push(aim(stored, engine, "feed p50, ms", "feed_p50_ms", Itself, AtMost(150.0)));
    }
    aims
}

fn sign_in_aims() -> Vec<Aim> {
    use Against::{Fewest, Itself, Peer};
    use Bound::{AtLeast, AtMost, None};
    let mut aims = Vec::new();
    let (other, signatures) = ("oidc-provider", "signatures alone");
    for (engine, usual, elliptic, refreshed) in
        [("sqlite", 700.0, 1500.0, 2500.0), ("postgres", 350.0, 450.0, 800.0)]
    {
        let to_other = AtLeast(if engine == "sqlite" { 4.0 } else { 1.5 });
        let of_signatures = if engine == "sqlite" { AtLeast(0.6) } else { None };
        let codes = [(sign_in::code::NAME, usual, of_signatures), (sign_in::code::ELLIPTIC, elliptic, None)];
        for (name, rate, to_signatures) in codes {
            aims.push(aim(name, engine, "rate", "rate", Itself, AtLeast(rate)));
            aims.push(aim(name, engine, "rate / oidc-provider", "rate", Peer(other), to_other));
            aims.push(aim(
                name,
                engine,
                "rate / both signatures alone",
                "rate",
                Peer(signatures),
                to_signatures,
            ));
        }
        let name = sign_in::refresh::NAME;
        aims.push(aim(name, engine, "rate", "rate", Itself, AtLeast(refreshed)));
        aims.push(aim(name, engine, "rate / oidc-provider", "rate", Peer(other), None));
        let to_code = AtLeast(if engine == "sqlite" { 1.7 } else { 1.8 });
        let code = Against::Workload(sign_in::code::NAME);
        aims.push(aim(name, engine, "rate / code by session to tokens", "rate", code, to_code));
    }
    for (engine, bound) in [("sqlite", 0.85), ("postgres", 0.7)] {
        let name = sign_in::password::NAME;
        aims.push(aim(name, engine, "rate / hash alone", "rate", Peer("hash alone"), AtLeast(bound)));
        aims.push(aim(name, engine, "rate / oidc-provider", "rate", Peer(other), None));
    }
    for name in
        [sign_in::code::NAME, sign_in::code::ELLIPTIC, sign_in::password::NAME, sign_in::refresh::NAME]
    {
        let label = "repeated of 100 commits";
        aims.push(aim(name, "postgres", label, "repeated_percent", Itself, AtMost(1.0)));
    }
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for workload in [sign_in::rules::CODE, sign_in::rules::PASSWORD] {
            let without = Peer(sign_in::rules::without(engine));
            aims.push(aim(
                workload,
                engine.name(),
                "CPU / without rules and groups",
                "cpu_us",
                without,
                AtMost(2.0),
            ));
        }
    }
    let name = sign_in::look_up::NAME;
    aims.push(aim(name, "sqlite", "CPU / bare", "cpu_us", Peer("bare"), AtMost(6.0)));
    aims.push(aim(name, "sqlite", "CPU / fewest users", "cpu_us", Fewest, AtMost(SAME)));
    aims.push(aim(name, "postgres", "p99, ms", "p99_ms", Itself, AtMost(5.0)));
    for engine in ["sqlite", "postgres"] {
        aims.push(aim(name, engine, "CPU / oidc-provider", "cpu_us", Peer(other), None));
        let name = sign_in::page::NAME;
        aims.push(aim(name, engine, "CPU / bare", "cpu_us", Peer("bare"), None));
        aims.push(aim(name, engine, "CPU / oidc-provider", "cpu_us", Peer(other), None));
    }
    aims
}

impl Aim {
    /// The measured value; `None` where it was not measured.
    pub fn measured(&self, results: &Results, users: u64) -> Option<f64> {
        match self.against {
            Against::Itself => results.median(self.workload, self.engine, users, self.figure),
            Against::Peer(peer) => results.ratio(self.workload, (self.engine, peer), users, self.figure),
            Against::Workload(other) => self.divided_by(results, users, other, users),
            Against::Fewest => {
                let is_measured = |size: &u64| results.run_of(self.workload, self.engine, *size).is_some();
                let fewest =
                    results.sizes().into_iter().find(is_measured).filter(|fewest| *fewest != users)?;
                self.divided_by(results, users, self.workload, fewest)
            }
        }
    }

    /// The figure divided by that of another workload or size, where one run measured both: another run had another machine, or
    /// another state of it.
    fn divided_by(&self, results: &Results, users: u64, other: &str, other_users: u64) -> Option<f64> {
        let run = |workload, users| results.run_of(workload, self.engine, users);
        let of = |workload, users| results.median(workload, self.engine, users, self.figure);
        let is_one_run = run(self.workload, users) == run(other, other_users);
        Some(of(self.workload, users)? / of(other, other_users)?).filter(|_| is_one_run)
    }

    /// The text of the bound, and the verdict.
    pub fn evaluate(&self, results: &Results, users: u64, measured: f64) -> (String, &'static str) {
        let verdict = |met| if met { " pass" } else { " **short**" };
        match self.bound {
            Bound::None => ("none".to_owned(), ""),
            Bound::AtLeast(bound) => (format!("at least {}", short(bound)), verdict(measured >= bound)),
            Bound::AtMost(bound) => (format!("at most {}", short(bound)), verdict(measured <= bound)),
            Bound::BySize(few, many) => {
                // between the two bounds, in proportion to the logarithm
                let part = ((users as f64 / 1e3).log10() / 3.0).clamp(0.0, 1.0);
                let bound = few + (many - few) * part;
                (format!("at most {} to {}", short(few), short(many)), verdict(measured <= bound))
            }
            Bound::ByDisk(quick, slow) => {
                let cost = results.median(create::DISK, "disk", users, "ms").unwrap_or(0.1);
                // between the two bounds, in proportion to the logarithm
                let part = ((cost / 0.1).log2() / 20_f64.log2()).clamp(0.0, 1.0);
                let bound = quick + (slow - quick) * part;
                let bound_text = format!("at least {} where an fsync is {} ms", short(bound), short(cost));
                (bound_text, verdict(measured >= bound))
            }
        }
    }
}
