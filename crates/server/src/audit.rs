//! The command line of the audit trail: export and verification.

mod export;
mod verify;

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use chancery_store::{Settings, Store};
use chancery_web::now;
use clap::Subcommand;

pub use export::{ExportError, ExportSummary, export};

use crate::{Config, ConfigArguments, key_file::read_master_key, start_error::BoxError};

const EXPORT_HELP: &str = "\
The file has JSON lines: a head with the trail's newest signed checkpoint, then the hashes of 256
leaves of its tree and their entries, as the interface answers them, and so on. Contents of erased
persons are null. Entries that the checkpoint does not cover yet are not in the file; a running
server makes a new checkpoint within seconds. The server may be running; run this as its user.

Examples:
  chancery audit export --store default --output trail.jsonl
  chancery --config chancery.toml audit export --store management | zstd > configuration.jsonl.zst";

const VERIFY_HELP: &str = "\
Needs no server, database or configuration, only the public keys. Says of each entry that was
changed, removed, inserted or moved which one it is, and where a file was cut. That the end of a
trail was not cut before the export shows only against a checkpoint that was kept elsewhere: fetch
one now and then and keep it where the administrators of the database cannot change it.

Exit status: 0 the trail is sound; 1 it is not, one line a finding; 2 it could not be verified.

Examples:
  curl -s https://id.example.com/.well-known/audit-keys.json > audit-keys.json
  chancery audit verify trail.jsonl --keys audit-keys.json
  curl -s -H \"Authorization: Bearer $TOKEN\" -o kept.note \\
    https://id.example.com/api/userstore/v2/default/administration/CustomAuditTrail/checkpoint
  zstd -dc trail.jsonl.zst | chancery audit verify - --keys audit-keys.json --checkpoint kept.note";

/// What to do with an audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum AuditCommand {
    /// Writes a trail up to its newest checkpoint, as JSON lines that can be verified offline.
    #[command(after_help = EXPORT_HELP)]
    Export {
        /// The user store, by name or instance id; management for the configuration
        #[arg(long, value_name = "NAME")]
        store: String,
        /// The file to write, readable by its owner [default: standard output]
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Verifies an exported trail against the public keys.
    #[command(after_help = VERIFY_HELP)]
    Verify {
        /// The exported file; - is standard input
        file: PathBuf,
        /// The keys that signed the trail, as /.well-known/audit-keys.json has them
        #[arg(long, value_name = "JWKS")]
        keys: PathBuf,
        /// An earlier checkpoint that was kept elsewhere: the trail must go on from it
        #[arg(long, value_name = "NOTE")]
        checkpoint: Option<PathBuf>,
    },
}

impl AuditCommand {
    /// Runs the command.
    pub fn run(&self, arguments: &ConfigArguments) -> ExitCode {
        let outcome = match self {
            Self::Export { store, output } => {
                run_export(arguments, store, output.as_deref()).map(|()| true).map_err(|error| (1, error))
            }
            Self::Verify { file, keys, checkpoint } => {
                let findings = &mut io::stdout().lock();
                verify::verify(file, keys, checkpoint.as_deref(), findings).map_err(|error| (2, error))
            }
        };
        match outcome {
            Ok(sound) => ExitCode::from(u8::from(!sound)),
            Err((status, error)) => {
                eprintln!("chancery: {error}");
                ExitCode::from(status)
            }
        }
    }
}

/// The number of checks for pending deletions, before the trail is exported without them.
const PATIENCE: u32 = 10;

fn run_export(arguments: &ConfigArguments, name: &str, output: Option<&Path>) -> Result<(), BoxError> {
    let config = Config::read(arguments)?;
    let master = read_master_key(&config.master_key_file)?;
    let settings = Settings { connections: 1, ..config.store };
    let store = Store::open_to_read(&config.database, settings)
        .map_err(|error| format!("cannot open the database: {error}"))?;
    let out: Box<dyn Write + Send> = match output {
        Some(path) => {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            Box::new(options.open(path).map_err(|error| format!("{}: {error}", path.display()))?)
        }
        None => Box::new(io::stdout()),
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let exported = runtime.block_on(async {
        for _ in 0..PATIENCE {
            if !export::deletions_wait(&store, name).await? {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        export(&store, &master, name, now(), BufWriter::new(out), report_progress).await
    });
    store.close();
    let (_, exported) = exported?;
    eprintln!("exported {} entries of {}", exported.entries, exported.origin);
    if exported.waiting > 0 {
        eprintln!(
            "{} newer entries are not in the file: no checkpoint covers them yet, a running server makes one \
             within seconds",
            exported.waiting
        );
    }
    if exported.deletions_wait {
        eprintln!(
            "the deletion of users is among them: verify may tell of their erased contents. Export again later"
        );
    }
    Ok(())
}

/// Reports the progress of a long export.
fn report_progress(done: u64, all: u64) {
    if done.is_multiple_of(1 << 17) {
        eprintln!("{done} of {all} entries");
    }
}
