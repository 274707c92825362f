//! `chancery`: reads the command line, and serves until it is stopped.

use std::{
    io::{Write as _, stderr, stdout},
    process::ExitCode,
    time::Duration,
};

use chancery::{
    Arguments, BoxError, Command, Config, ConfigArguments, Log, RootAccess, RootClient, Server, StartError,
    adopt, back_up, build, check_upgrade, console_link, exit_on_panic, log_out, migrate, print_token,
    recover_root, restore, unknown_variables,
};
use clap::Parser as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Prints a line for people. A closed standard output is no error.
macro_rules! say {
    ($($words:tt)*) => {{ let _ = writeln!(stdout(), $($words)*); }};
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match &arguments.command {
        Some(Command::Version) => {
            say!("chancery {}", build::described());
            return ExitCode::SUCCESS;
        }
        Some(Command::Audit(command)) => return command.run(&arguments.config),
        Some(Command::Key(command)) => return exit_code(command.run(&arguments.config)),
        Some(Command::Copy(copy)) => return exit_code(copy.run(&arguments.config)),
        Some(Command::CheckUpgrade) => return check_upgrade(&arguments.config),
        Some(Command::Configuration(command)) => return command.run(),
        Some(Command::Login(login)) => return exit_code(login.run()),
        Some(Command::Token) => return exit_code(print_token()),
        Some(Command::Logout) => return exit_code(log_out()),
        _ => {}
    }
    let outcome = Config::read(&arguments.config).map_err(Into::into).and_then(|config| {
        if arguments.command == Some(Command::CheckConfig) {
            for warning in unknown_variables() {
                let _ = writeln!(stderr(), "chancery: {warning}");
            }
            config.check_files()?;
            let _ = write!(stdout(), "{}", config.display());
            return Ok(());
        }
        let said = match &arguments.command {
            Some(Command::ConsoleLink) => run(&config, console_link(&config))?,
            Some(Command::Backup { output }) => run(&config, back_up(&config, output))?,
            Some(Command::Restore(options)) => run(&config, restore(&config, options))?,
            Some(Command::Adopt) => run(&config, adopt(&config))?,
            Some(Command::Migrate) => return run(&config, migrate(&config)).map(print_applied),
            Some(Command::Recover) => {
                return run(&config, recover_root(&config)).map(|root| print_recovered(&root));
            }
            _ => return serve(&config, &arguments.config),
        };
        say!("{said}");
        Ok(())
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr(), "chancery: {error}");
            let _ = writeln!(stderr(), "chancery --help explains every option.");
            ExitCode::FAILURE
        }
    }
}

/// The exit status of a command that reads its own configuration.
fn exit_code(outcome: Result<(), BoxError>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr(), "chancery: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(config: &Config, arguments: &ConfigArguments) -> Result<(), BoxError> {
    exit_on_panic();
    // the allocator requests huge pages, and each of them is resident as soon as one byte of it is used:
    // with a heap for each thread that is half of all memory
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let log = Log::start(&config.log)?;
    for warning in unknown_variables() {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(async {
        // by default SIGHUP ends a process; a start may wait for its database
        let mut hangup = signal(SignalKind::hangup())?;
        let server = Server::start(config).await?;
        // installed before the start is announced
        let stop = stop_signal(config.drain)?;
        let (version, commit) = (build::VERSION, build::COMMIT);
        tracing::info!(version, commit, schema = chancery_store::schema_version(), "started");
        greet(&server);
        let reload = server.reload();
        let read_again = async {
            while hangup.recv().await.is_some() {
                reload.again(arguments, &log).await;
            }
        };
        tokio::select! {
            outcome = server.run(stop) => outcome?,
            () = read_again => {}
        }
        tracing::info!("stopped");
        Ok(())
    });
    Log::finish();
    outcome
}

/// Runs a command with the configuration of a server, and writes its log.
fn run<T>(config: &Config, command: impl Future<Output = Result<T, StartError>>) -> Result<T, BoxError> {
    Log::start(&config.log)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(command).map_err(Into::into);
    Log::finish();
    outcome
}

fn print_applied(count: usize) {
    match count {
        0 => say!("The schema is up to date: nothing was missing."),
        1 => say!("The schema is up to date: 1 migration was applied."),
        count => say!("The schema is up to date: {count} migrations were applied."),
    }
}

fn print_recovered(root_access: &RootAccess) {
    say!("This client app is SystemAdmin and gets tokens by this secret alone.");
    for line in root_lines(root_access) {
        say!("{line}");
    }
}

/// Names the root client app, and its secret if it was generated just now.
fn root_lines(root_access: &RootAccess) -> Vec<String> {
    let mut lines = vec![match &root_access.root {
        Some(RootClient { id, is_named: true }) => format!("  root client id  {id} (or its name, root)"),
        Some(RootClient { id, .. }) => format!("  root client id  {id}"),
        None => "  root client     none is SystemAdmin; chancery recover makes one".to_owned(),
    }];
    if let Some(secret) = &root_access.new_secret {
        lines.push(format!("  root secret     {}", String::from_utf8_lossy(secret.expose())));
        lines.push("                  (keep it: it is not shown again)".to_owned());
    }
    lines
}

/// Resolves with the time to drain: after Ctrl-C there is no load balancer that needs it.
fn stop_signal(drain: Duration) -> std::io::Result<impl Future<Output = Duration>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let received = async |signal: &mut Signal| {
        signal.recv().await;
    };
    Ok(async move {
        let drain = tokio::select! {
            () = received(&mut terminate) => drain,
            () = received(&mut interrupt) => Duration::ZERO,
        };
        tracing::info!(seconds = drain.as_secs_f64(), "stopping");
        drain
    })
}

fn greet(server: &Server) {
    let url = &server.public_url;
    let mut lines = vec![format!("Chancery listens on {url}"), format!("  documentation   {url}/openapi")];
    if let Some(path) = &server.root_access.setup {
        lines.push(format!("  setup link      {url}{path}"));
        let within =
            "                  (open it within an hour to become the first administrator of the console)";
        lines.push(within.to_owned());
    } else if server.has_console() {
        lines.push(format!("  console         {url}/console"));
    }
    lines.extend(root_lines(&server.root_access));
    let new = server.root_access.new_secret.as_ref().map(|secret| String::from_utf8_lossy(secret.expose()));
    let secret = new.as_deref().unwrap_or("$CHANCERY_ROOT_CLIENT_SECRET");
    let id = server.root_access.root.as_ref().filter(|root| !root.is_named).map(|root| root.id.to_string());
    let client = id.as_deref().unwrap_or("root");
    lines.push("Try it:".to_owned());
    lines.push(format!(
        "  curl -s -H \"Authorization: Bearer $(curl -s -u \"{client}:{secret}\" -d grant_type=client_credentials {url}/connect/token \
         | sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')\" {url}/api/userstore/v2/default/administration/User\n"
    ));
    // written at once, so that no line of the log comes between
    let _ = stdout().write_all(lines.join("\n").as_bytes());
}
