//! `chancery`: reads the command line, serves until it is told to stop.

use std::{io::IsTerminal as _, process::ExitCode};

use chancery::{Arguments, Command, Config, Root, Server, Welcome, recover_root};
use clap::Parser as _;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match &arguments.command {
        Some(Command::Version) => {
            println!("chancery {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some(Command::Audit(command)) => return command.run(&arguments),
        _ => {}
    }
    let outcome = Config::read(&arguments).map_err(|error| error.to_string()).and_then(|config| {
        if arguments.command == Some(Command::CheckConfig) {
            print!("{}", config.display());
            return Ok(());
        }
        if arguments.command == Some(Command::Recover) {
            return make_anew(&config);
        }
        serve(&config)
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("chancery: {error}");
            eprintln!("chancery --help explains every option.");
            ExitCode::FAILURE
        }
    }
}

/// The exit status of a server that cannot go on (EX_SOFTWARE).
const BROKEN: i32 = 70;

fn serve(config: &Config) -> Result<(), String> {
    chancery_store::when_broken(|_| std::process::exit(BROKEN));
    start_log(&config.log)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let server = Server::start(config).await.map_err(|error| error.to_string())?;
        // listened for before anybody is told that the server is there
        let stop = stop_signal().map_err(|error| error.to_string())?;
        greet(&server);
        server.run(stop).await;
        tracing::info!("stopped");
        Ok(())
    })
}

fn make_anew(config: &Config) -> Result<(), String> {
    start_log(&config.log)?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let welcome = runtime.block_on(recover_root(config)).map_err(|error| error.to_string())?;
    println!("This client app is SystemAdmin and gets tokens by this secret alone.");
    print_root(&welcome);
    Ok(())
}

/// Prints the root client app, and its secret where it was just made.
fn print_root(welcome: &Welcome) {
    match &welcome.root {
        Some(Root { id, is_named: true }) => println!("  root client id  {id} (or its name, root)"),
        Some(Root { id, .. }) => println!("  root client id  {id}"),
        None => println!("  root client     none is SystemAdmin; chancery recover makes one"),
    }
    if let Some(secret) = &welcome.new_secret {
        println!("  root secret     {}", String::from_utf8_lossy(secret.expose()));
        println!("                  (keep it: it is not shown again)");
    }
}

/// Logs go to standard error: as JSON, or for people when a terminal reads them.
fn start_log(filter: &str) -> Result<(), String> {
    // the library takes what a client did wrong for an error of ours
    let filter = format!("{filter},webauthn_rs_core=off,webauthn_attestation_ca=off");
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("log: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        log.init();
    } else {
        log.json().flatten_event(true).init();
    }
    Ok(())
}

fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
    })
}

fn greet(server: &Server) {
    let url = &server.public_url;
    println!("Chancery listens on {url}");
    println!("  documentation   {url}/openapi");
    print_root(&server.welcome);
    let new = server.welcome.new_secret.as_ref().map(|secret| String::from_utf8_lossy(secret.expose()));
    let secret = new.as_deref().unwrap_or("$CHANCERY_ROOT_CLIENT_SECRET");
    let id = server.welcome.root.as_ref().filter(|root| !root.is_named).map(|root| root.id.to_string());
    let client = id.as_deref().unwrap_or("root");
    println!("Try it:");
    println!(
        "  curl -s -H \"Authorization: Bearer $(curl -s -u \"{client}:{secret}\" -d grant_type=client_credentials {url}/connect/token \
         | sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')\" {url}/api/userstore/v2/default/administration/User"
    );
}
