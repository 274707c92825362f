//! The benchmark: seeds users, compares the server on both engines with a bare HTTP server, with each engine alone and
//! with another OpenID provider, and reports the ratios.

#![expect(clippy::cast_precision_loss, reason = "figures are rounded for people")]

mod aims;
mod browser;
mod chart;
mod client;
mod clock;
mod cluster;
mod fault;
mod histogram;
mod load;
mod peers;
mod people;
mod process;
mod report;
mod results;
mod seed;
mod server;
mod target;
mod workloads;

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{
    cluster::Cluster,
    fault::{Result, fault},
    peers::oidc_provider::Installation,
    results::Results,
    seed::Seeds,
    server::{Server, ServerConfig, sqlite_file},
    target::Engine,
    workloads::Bench,
};

const AFTER_HELP: &str = "\
Build both first:   cargo build --release -p chancery -p chancery-bench
A quick look:       cargo run --release -p chancery-bench -- --users 1000 --engines sqlite --seconds 2 --rounds 1
The whole table:    cargo run --release -p chancery-bench -- --out docs
Ten minutes of constant creates:
                    cargo run --release -p chancery-bench -- --users 1000000 --workloads sustained --sustained 600
People who sign in, at 1,000 and 1,000,000 sessions, with oidc-provider beside:
                    cargo run --release -p chancery-bench -- --users 1000,1000000 --workloads sign-in

Seeded databases are kept below target/bench-data and copied for each run; a new schema makes new
ones. oidc-provider is installed below target/bench-peers, once. PostgreSQL is a cluster of its own in a temporary folder, with fsync on, and is gone at the
end. Runs of the servers that are compared are interleaved; ratios are taken within one round, and
the middle of the rounds is told.";

/// The command line.
#[derive(Parser)]
#[command(name = "chancery-bench", about = "Measures Chancery", after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Command {
    /// The bare HTTP server that the harness runs beside the others.
    #[command(hide = true)]
    Bare {
        /// Where to listen.
        address: SocketAddr,
    },
    /// Fills the embedded database of a stopped server with users.
    Fill {
        /// The file.
        file: PathBuf,
        /// How many users.
        users: u64,
    },
    /// Writes tables and pictures anew from the results in a folder.
    Report {
        /// The folder of documentation with `benchmarks/results.json`.
        folder: PathBuf,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Workload {
    /// One user by id or login name.
    Read,
    /// A filtered, sorted page of 50, the first and the 10,000th.
    Page,
    /// Durable creates from 64 connections.
    Create,
    /// Changes of users from 64 connections: of a name, and of the e-mail address.
    Update,
    /// 10,000 users in one request.
    Batch,
    /// All users with their groups.
    List,
    /// A group with 100,000 members.
    Group,
    /// Passwords being verified, and reads beside that.
    Password,
    /// Administrators who change rights and settings in parallel.
    Administrators,
    /// Tokens, effective permissions with 10,000 roles, a list of 10,000 client apps.
    Management,
    /// People who sign in: codes by sessions with their tokens, passwords, look-ups of sessions, the page, refreshing.
    SignIn,
    /// What 100 claim rules and 500 groups cost a whole sign-in.
    SignInRules,
    /// What webhooks cost, how far readers are behind, feeds and backlogs.
    Events,
    /// How far readers are behind a change while ten million events are kept; the databases are not the same afterwards.
    EventsKept,
    /// Directories: what SCIM does to users and groups, beside the same by version 2.
    Scim,
    /// Tokens, reads, searches, creates, sign-ins and what is stored, beside Keycloak on `PostgreSQL`; needs --keycloak
    Keycloak,
    /// Start and idle.
    Start,
    /// Constant creates for long.
    Sustained,
}

#[derive(Args)]
struct Options {
    /// How many users are seeded; several numbers run one after another
    #[arg(long, value_delimiter = ',', default_value = "1000,100000,1000000")]
    users: Vec<u64>,
    /// The engines to measure
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres")]
    engines: Vec<Database>,
    /// The workloads to run
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "start,read,page,list,group,create,update,batch,password,administrators,management,sign-in,sign-in-rules,events,scim,sustained"
    )]
    workloads: Vec<Workload>,
    /// How long one run of a load counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How often everything is repeated
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=99))]
    rounds: u64,
    /// How many seconds the constant creates go on, with the largest number of users
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..=3600))]
    sustained: u64,
    /// The folder of documentation, for `docs/performance.md` and `docs/benchmarks`; without it, tables are printed
    #[arg(long)]
    out: Option<PathBuf>,
    /// Keep what the folder has of runs that are not repeated now
    #[arg(long)]
    add: bool,
    /// The server to measure [default: the one built beside this program]
    #[arg(long)]
    server: Option<PathBuf>,
    /// Measure sign-ins without oidc-provider beside them, which needs node and npm
    #[arg(long)]
    no_oidc_provider: bool,
    /// The unpacked distribution of Keycloak, as scripts/check-providers --install keycloak leaves it in the cache
    #[arg(long)]
    keycloak: Option<PathBuf>,
    /// Make the seeded databases anew
    #[arg(long)]
    fresh: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            match arguments.command {
                Some(Command::Bare { address }) => peers::bare::serve(address).await,
                Some(Command::Fill { file, users }) => seed::fill(&file, users),
                Some(Command::Report { folder }) => rewrite_report(&folder),
                None => {
                    tokio::select! {
                        outcome = measure(&arguments.options) => outcome,
                        outcome = interrupted() => outcome,
                    }
                }
            }
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chancery-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits for a signal to stop, so that servers and clusters are stopped and files are removed.
async fn interrupted() -> Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
    Err(fault("interrupted"))
}

fn rewrite_report(folder: &Path) -> Result<()> {
    report::write(&Results::read(&folder.join(report::RESULTS))?, folder)
}

/// A folder that is removed at the end of the run.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn measure(options: &Options) -> Result<()> {
    let own = std::env::current_exe()?;
    let program = options.server.clone().unwrap_or_else(|| own.with_file_name("chancery"));
    if !program.exists() {
        return Err(fault("the server is not built: cargo build --release -p chancery"));
    }
    let postgres = options.engines.contains(&Database::Postgres);
    if postgres && !cluster::is_installed() {
        return Err(fault("PostgreSQL is not installed; --engines sqlite measures without it"));
    }
    let target = own.ancestors().nth(2).ok_or_else(|| fault("this program is in no target folder"))?;
    let storage = target.join("bench-data");
    if options.fresh && storage.exists() {
        fs::remove_dir_all(&storage)?;
    }
    let signs_in = options.workloads.contains(&Workload::SignIn) && !options.no_oidc_provider;
    let peer = if signs_in { Some(peers::oidc_provider::install(target)?) } else { None };
    let scratch = Scratch(std::env::temp_dir().join(format!("chancery-bench-{}", std::process::id())));
    fs::create_dir_all(&scratch.0)?;
    let seeds = Seeds::new(&storage, &scratch.0, &program).await?;
    let earlier = options.out.as_ref().filter(|_| options.add).map(|folder| folder.join(report::RESULTS));
    let mut results = match earlier {
        Some(file) if file.exists() => Results::read(&file)?,
        _ => Results::default(),
    };
    results.begin_run(facts(options));
    let largest = options.users.iter().max().copied().unwrap_or(0);
    for users in &options.users {
        let outcome =
            run_size(options, (&seeds, peer.as_ref()), *users, *users == largest, &mut results).await;
        // results are reported even if something failed
        save(options, &mut results)?;
        outcome?;
    }
    println!("{}", report::markdown(&results));
    Ok(())
}

/// Writes the results so far.
fn save(options: &Options, results: &mut Results) -> Result<()> {
    let Some(folder) = &options.out else { return Ok(()) };
    fs::create_dir_all(folder.join("benchmarks"))?;
    results.remove_empty_runs();
    report::write(results, folder)
}

/// Runs all workloads with one number of users.
async fn run_size(
    options: &Options,
    (seeds, peer): (&Seeds, Option<&Installation>),
    users: u64,
    is_largest: bool,
    results: &mut Results,
) -> Result<()> {
    if users < 200 {
        return Err(fault("measure with at least 200 users"));
    }
    let folder = Scratch(seeds.work.join(users.to_string()));
    fs::create_dir_all(&folder.0)?;
    let mut bench = Bench {
        users,
        time: Duration::from_secs(options.seconds),
        rounds: options.rounds,
        configs: Vec::new(),
        servers: Vec::new(),
        sqlite: None,
        postgres: None,
        results: std::mem::take(results),
    };
    let mut cluster: Option<Cluster> = None;
    let outcome = async {
        if options.engines.contains(&Database::Sqlite) {
            let own = seeds.sqlite(users, &format!("{users}/sqlite")).await?;
            let peer = seeds.sqlite(users, &format!("{users}/peer")).await?;
            bench.configs.push(ServerConfig::sqlite(&seeds.program, &own));
            bench.sqlite = Some((own, sqlite_file(&peer)));
        }
        if options.engines.contains(&Database::Postgres) {
            let (cluster_of_run, files) = seeds.postgres(users, &format!("{users}/postgres")).await?;
            bench.configs.push(seeds.config_on(&cluster_of_run, &files)?);
            bench.postgres = Some(cluster_of_run.url());
            cluster = Some(cluster_of_run);
        }
        for config in bench.configs.clone() {
            let server = if options.workloads.contains(&Workload::Start) {
                workloads::start::run(&mut bench, &config).await?
            } else {
                config.start().await?
            };
            bench.servers.push(server);
        }
        let token = bench.servers.first().map(|server| server.target.token.clone()).unwrap_or_default();
        bench.servers.insert(0, Server::bare(&token).await?);
        run_workloads(&mut bench, options, (seeds, peer), is_largest).await
    }
    .await;
    let servers = std::mem::take(&mut bench.servers);
    *results = bench.results;
    let mut stopped = Ok(());
    for server in servers {
        // the bare server ends when it is dropped
        if server.target.engine != Engine::Bare {
            stopped = stopped.and(server.stop());
        }
    }
    if let Some(cluster) = cluster {
        stopped = stopped.and(cluster.stop());
    }
    outcome.and(stopped)
}

async fn run_workloads(
    bench: &mut Bench,
    options: &Options,
    (seeds, peer): (&Seeds, Option<&Installation>),
    is_largest: bool,
) -> Result<()> {
    for workload in &options.workloads {
        for server in &mut bench.servers {
            server.renew().await?;
        }
        match workload {
            Workload::Read => workloads::read::run(bench).await?,
            Workload::Page => workloads::page::run(bench).await?,
            Workload::List => workloads::list::run(bench).await?,
            Workload::Group => workloads::group::run(bench).await?,
            Workload::Create => workloads::create::run(bench).await?,
            Workload::Update => workloads::update::run(bench).await?,
            Workload::Batch => workloads::batch::run(bench).await?,
            Workload::Password => workloads::password::run(bench).await?,
            Workload::Administrators => workloads::administrators::run(bench).await?,
            Workload::Management => workloads::management::run(bench).await?,
            Workload::SignIn => workloads::sign_in::run(bench, seeds, peer).await?,
            Workload::SignInRules => workloads::sign_in::rules::run(bench, seeds).await?,
            Workload::Events => workloads::events::run(bench).await?,
            Workload::EventsKept => workloads::events::stored::run(bench).await?,
            Workload::Scim => workloads::scim::run(bench).await?,
            Workload::Keycloak => {
                let distribution =
                    options.keycloak.as_deref().ok_or_else(|| fault("where is it? --keycloak"))?;
                let work = seeds.work.join(bench.users.to_string());
                workloads::keycloak::run(bench, seeds, distribution, &work).await?;
            }
            Workload::Sustained if is_largest => {
                workloads::create::sustained(bench, Duration::from_secs(options.sustained)).await?;
            }
            // start was measured when the servers were started
            Workload::Start | Workload::Sustained => {}
        }
        save(options, &mut bench.results)?;
    }
    Ok(())
}

/// Facts about this run and the machine that it measures on.
fn facts(options: &Options) -> BTreeMap<String, String> {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let line = |text: &str, name: &str| {
        let field = text.lines().find(|line| line.starts_with(name));
        field
            .and_then(|line| line.split_once(':'))
            .map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let output = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).output();
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        )
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    [
        ("date", output("date", &["-u", "+%F"])),
        ("processor", line(&file("/proc/cpuinfo"), "model name")),
        ("cores", cores.to_string()),
        ("memory", line(&file("/proc/meminfo"), "MemTotal")),
        ("kernel", output("uname", &["-r"])),
        ("node", output("node", &["--version"])),
        ("postgres", output("psql", &["--version"])),
        ("sqlite", rusqlite::version().to_owned()),
        ("seconds", options.seconds.to_string()),
        ("rounds", options.rounds.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}
