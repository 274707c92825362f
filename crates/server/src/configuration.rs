//! `chancery export`, `plan` and `apply`: the configuration of a server as files (`docs/configuration-as-code.md`).

mod applying;
mod folder;
mod server;
mod show;

use std::{
    io::{Write as _, stderr},
    path::PathBuf,
    process::ExitCode,
};

use chancery_configuration::{
    Kind, Plan, PlanInput, Problem, State, export, kinds, plan, secret_names, without_effect,
};
use chancery_management::SERVICE;
use chancery_resource::random;
use chancery_web::now;
use clap::{Args, Subcommand};
use uuid::Builder;

use self::{folder::Folder, server::ManagedServer};
use crate::login::wait_for;
use crate::start_error::BoxError;

const EXPORT_HELP: &str = "\
Writes a file for each kind: an array of documents {\"kind\", \"members\"}. Rows name each other, secrets
and what the server makes are left out. Users, groups and what is about them are no configuration.
The token is that of $CHANCERY_TOKEN, of the file that $CHANCERY_TOKEN_FILE names or of
$CREDENTIALS_DIRECTORY/token, else of chancery login.

Exit status: 0 done; 1 it could not be.

Example:
  chancery export configuration --server https://id.example.com";

const PLAN_HELP: &str = "\
Says what apply would do, and tries it by dry runs, as far as no row that is made first is needed.
Members that a document does not have are left as they are. A row is named by the end of its name:
\"Web\", or \"Default/Default/Web\" where there are several. A secret is {\"secret\": \"NAME\"}: its value is
read from $CREDENTIALS_DIRECTORY/NAME, a file that others cannot read, or the environment variable NAME.
The token is that of $CHANCERY_TOKEN, of the file that $CHANCERY_TOKEN_FILE names or of
$CREDENTIALS_DIRECTORY/token, else of chancery login.

Exit status: 0 nothing to do; 2 there is; 1 it could not be said.

Example:
  WEB_SECRET=... chancery plan configuration --server https://id.example.com";

const APPLY_HELP: &str = "\
Shows what chancery plan shows, asks, and does it: batches kind by kind, in the order in which they need
each other, each all or nothing. What somebody else changed meanwhile is refused, and nothing of that batch is
done; what was done before stays, and the next plan says what is left. DIR/.applied.json remembers
what was made, from before it is sent: --prune deletes of that what has no document any more, and nothing else.

Exit status: 0 the server is as the documents say; 2 it is not, since the answer was not yes; 1 it could not be done.

Example:
  chancery apply configuration --server https://id.example.com --prune --yes";

/// What is done with the configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum ConfigurationCommand {
    /// Writes the configuration of a server to files.
    #[command(after_help = EXPORT_HELP)]
    Export(Location),
    /// Says how files differ from the configuration of a server.
    #[command(after_help = PLAN_HELP)]
    Plan(Planning),
    /// Makes the configuration of a server what files say.
    #[command(after_help = APPLY_HELP)]
    Apply(Applying),
}

/// The files, and the server.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The folder of the files
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The server's public URL
    #[arg(long, env = "CHANCERY_SERVER", value_name = "URL")]
    server: String,
}

/// How files are compared.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Planning {
    #[command(flatten)]
    location: Location,
    /// Delete what these files made and do not hold any more
    #[arg(long)]
    prune: bool,
}

/// How files are applied.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Applying {
    #[command(flatten)]
    planning: Planning,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// The result of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommandResult {
    /// No difference is left.
    Done,
    /// Differences are left.
    Differs,
}

impl ConfigurationCommand {
    /// Runs it.
    pub fn run(&self) -> ExitCode {
        let mut outcome = CommandResult::Done;
        let working = async {
            outcome = match self {
                Self::Export(location) => write(location).await?,
                Self::Plan(planning) => compare(planning).await?,
                Self::Apply(applying) => applying::apply(applying).await?,
            };
            Ok(())
        };
        match (wait_for(working), outcome) {
            (Ok(()), CommandResult::Done) => ExitCode::SUCCESS,
            (Ok(()), CommandResult::Differs) => ExitCode::from(2),
            (Err(error), _) => {
                let _ = writeln!(stderr(), "chancery: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// The kinds of the configuration.
fn configured() -> Vec<Kind> {
    kinds(&SERVICE.all().collect::<Vec<_>>())
}

async fn write(location: &Location) -> Result<CommandResult, BoxError> {
    let (kinds, server) = (configured(), ManagedServer::open(&location.server)?);
    let state = server.read(&kinds).await?;
    let documents = export(&state).map_err(|problems| listed(&problems, &Folder::default()))?;
    let count = Folder::write(&location.folder, &kinds, &documents)?;
    let _ = writeln!(stderr(), "exported {} documents in {count} files", documents.len());
    Ok(CommandResult::Done)
}

async fn compare(planning: &Planning) -> Result<CommandResult, BoxError> {
    let (kinds, server) = (configured(), ManagedServer::open(&planning.location.server)?);
    let state = server.read(&kinds).await?;
    let mut planned = Planned::of(planning, &state, &server)?;
    let tried = planned.try_out(&state, &server).await;
    show::plan(&planned.plan, &kinds);
    tried?;
    Ok(if planned.plan.is_empty() { CommandResult::Done } else { CommandResult::Differs })
}

/// A plan, and the files that it was made from.
struct Planned {
    folder: Folder,
    plan: Plan,
}

impl Planned {
    /// Reads the files and compares them with the state of a server.
    fn of(planning: &Planning, state: &State<'_>, server: &ManagedServer) -> Result<Self, BoxError> {
        let mut folder = Folder::read(&planning.location.folder)?;
        folder.find_secrets(&secret_names(&folder.documents))?;
        let memory = folder.memory_of(&server.url);
        let known = PlanInput { memory, secrets: &folder.secrets, prune: planning.prune };
        let mut new_id = || {
            let milliseconds = u64::try_from(now().0).unwrap_or_default();
            Builder::from_unix_timestamp_millis(milliseconds, &random::<10>()).into_uuid().to_string()
        };
        let plan = plan(state, &folder.documents, &known, &mut new_id);
        let plan = plan.map_err(|problems| listed(&problems, &folder))?;
        Ok(Self { folder, plan })
    }

    /// Sends trial calls without changing anything, and drops the changes that turn out to change nothing.
    async fn try_out(&mut self, state: &State<'_>, server: &ManagedServer) -> Result<(), BoxError> {
        for (index, (kind, changes)) in state.kinds.iter().zip(&mut self.plan.changes).enumerate() {
            let mut dropped = Vec::new();
            for call in chancery_configuration::trials(kind, changes, &self.folder.secrets) {
                let answer = server.send(&call, true).await;
                let answer =
                    answer.map_err(|refusal| refusal.describe(kind, changes, &call, &self.folder))?;
                dropped.extend(without_effect(&call, changes, state.rows(index), &answer));
            }
            let mut number = 0..;
            changes.retain(|_| number.next().is_none_or(|number| !dropped.contains(&number)));
        }
        Ok(())
    }
}

/// Problems for people, each with its file and pointer.
fn listed(problems: &[Problem], folder: &Folder) -> String {
    let lines: Vec<String> = problems.iter().map(|problem| folder.describe(problem)).collect();
    lines.join("\nchancery: ")
}
