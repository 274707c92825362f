//! `chancery apply`: executes a plan, call by call.

use std::{
    collections::BTreeSet,
    io::{Write as _, stderr, stdin},
};

use chancery_configuration::{Call, ChangeKind, Kind, Memory, adopt, batches, deletions, links};

use super::{Applying, CommandResult, Planned, configured, server::ManagedServer, show};
use crate::start_error::BoxError;

/// Shows a plan, asks for confirmation, and executes it.
pub async fn apply(applying: &Applying) -> Result<CommandResult, BoxError> {
    let (kinds, server) = (configured(), ManagedServer::open(&applying.planning.location.server)?);
    let state = server.read(&kinds).await?;
    let mut planned = Planned::of(&applying.planning, &state, &server)?;
    let tried = planned.try_out(&state, &server).await;
    show::plan(&planned.plan, &kinds);
    tried?;
    if planned.plan.is_empty() {
        return Ok(CommandResult::Done);
    }
    if !applying.yes && !is_confirmed() {
        let _ = writeln!(stderr(), "Nothing was done.");
        return Ok(CommandResult::Differs);
    }
    let mut created = BTreeSet::new();
    for (index, kind) in kinds.iter().enumerate() {
        planned.write(&server, index, kind, &mut created).await?;
    }
    for (index, kind) in kinds.iter().enumerate() {
        for call in links(planned.of_kind(index)) {
            planned.send(&server, index, kind, &call).await?;
        }
    }
    for (index, kind) in kinds.iter().enumerate().rev() {
        for call in deletions(kind, planned.of_kind(index)) {
            planned.send(&server, index, kind, &call).await?;
        }
    }
    let _ = writeln!(stderr(), "Applied.");
    Ok(CommandResult::Done)
}

fn is_confirmed() -> bool {
    let _ = write!(stderr(), "Apply this? Only yes does it: ");
    let mut answer = String::new();
    stdin().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}

impl Planned {
    fn of_kind(&self, index: usize) -> &[chancery_configuration::Change] {
        self.plan.changes.get(index).map(Vec::as_slice).unwrap_or_default()
    }

    /// Writes the rows of a kind, after the rows that the server created by itself were adopted.
    async fn write(
        &mut self,
        server: &ManagedServer,
        index: usize,
        kind: &Kind,
        created: &mut BTreeSet<String>,
    ) -> Result<(), BoxError> {
        if self.plan.can_adopt(index) {
            let list = server
                .list(kind)
                .await
                .map_err(|refusal| refusal.describe(kind, &[], &NO_CALL, &self.folder))?;
            if let Some(changes) = self.plan.changes.get_mut(index) {
                adopt(kind, changes, list, created)?;
            }
        }
        for call in batches(kind, self.of_kind(index), &self.folder.secrets) {
            self.send(server, index, kind, &call).await?;
        }
        let new = self.of_kind(index).iter().filter(|change| change.kind == ChangeKind::Create);
        created.extend(new.map(|change| change.key.clone()));
        Ok(())
    }

    /// Makes a call, and remembers its effect: the rows that it creates before it is sent, and the rest once it is answered.
    async fn send(
        &mut self,
        server: &ManagedServer,
        index: usize,
        kind: &Kind,
        call: &Call,
    ) -> Result<(), BoxError> {
        let _ = writeln!(stderr(), "{} {} ({})", call.method, call.path, call.of.len());
        let changes = self.plan.changes.get(index).map(Vec::as_slice).unwrap_or_default();
        let is_batch = call.path.ends_with("/batch");
        let mut expected = Vec::new();
        if is_batch {
            self.folder.remember(&server.url, |memory| expected = memory.expect(kind, changes, call))?;
        }
        if let Err(refusal) = server.send(call, false).await {
            // without an answer it is not known which rows were created
            if refusal.is_final() {
                let forget =
                    |memory: &mut Memory| expected.iter().for_each(|key| memory.remove(kind.name, key));
                self.folder.remember(&server.url, forget)?;
            }
            return Err(refusal.describe(kind, self.of_kind(index), call, &self.folder).into());
        }
        if !is_batch {
            return Ok(());
        }
        self.folder.remember(&server.url, |memory| memory.note(kind, changes, call))
    }
}

/// The call of a list, which is not in a plan.
const NO_CALL: Call =
    Call { method: "GET", path: String::new(), body: serde_json::Value::Null, of: Vec::new() };
