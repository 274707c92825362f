//! `chancery check-upgrade`: the rows of a database that this release would refuse.

use std::{
    io::{Write as _, stderr, stdout},
    process::ExitCode,
};

use chancery_management::upgrade;
use chancery_resource::{MasterKey, Problem, Shape, StoredViolation};
use chancery_store::{Mode, Settings, Store};

use crate::{
    Config, ConfigArguments,
    key_file::read_master_key,
    services::services,
    start_error::{BoxError, cause_of},
};

/// The help of the command.
pub const CHECK_UPGRADE_HELP: &str = "\
Run this command of the new release before an upgrade; the server of the old release may run. It reads the
database with the schema of the old release, changes nothing, and checks each row of a resource against the
rules by which this release accepts writes. Each line of output has the kind, the id and the name of a row, the
field, and the reason. Such a row stays in the database and may be sent back unchanged, but its function can be
lost: a refused redirect URI is not used, a refused option has its default value, and a refused view is reduced
to the allowed elements. Needs the database and the master key; run it as the server's user.

Exit status: 0 no row is refused; 1 some are; 2 the check failed.

Example:
  chancery --config chancery.toml check-upgrade";

/// Runs the command.
pub fn check_upgrade(arguments: &ConfigArguments) -> ExitCode {
    match run(arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "chancery: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &ConfigArguments) -> Result<u64, BoxError> {
    let config = Config::read(arguments)?;
    let master = read_master_key(&config.master_key_file)?;
    let settings = Settings { connections: 1, ..config.store };
    let store = Store::open_older_to_read(&config.database, settings)
        .map_err(|error| format!("cannot open the database: {error}"))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let count = runtime.block_on(find(&store, &master));
    store.close();
    let count = count?;
    let summary = match count {
        0 => "this release refuses nothing that is stored".to_owned(),
        1 => "this release would refuse one value that is stored".to_owned(),
        more => format!("this release would refuse {more} values that are stored"),
    };
    let _ = writeln!(stderr(), "{summary}");
    Ok(count)
}

/// Finds and prints the refused values. Returns their number.
async fn find(store: &Store, master: &MasterKey) -> Result<u64, BoxError> {
    let failed = |problem: Problem| format!("cannot read the database: {}", cause_of(problem));
    let mut count = 0;
    for shape in shapes() {
        let mut after = Some(0);
        while let Some(rid) = after.take() {
            let master = master.clone();
            let check = move |tx: &mut chancery_store::Tx<'_>| {
                let mut refusals = Vec::new();
                let report = &mut |refusal| refusals.push(refusal);
                let last = shape.check_stored(tx, &master, rid, upgrade::refusals, report)?;
                Ok::<_, Problem>((last, refusals))
            };
            let (last, refusals) =
                store.run("CheckUpgrade", Mode::Long, None, check).await.map_err(failed)?;
            count += print(&refusals)?;
            after = last;
        }
    }
    let spellings = move |tx: &mut chancery_store::Tx<'_>| {
        let mut refusals = Vec::new();
        if !tx.columns("client_app_resource")?.is_empty() {
            upgrade::double_spellings(tx, &mut |refusal| refusals.push(refusal))?;
        }
        Ok::<_, Problem>(refusals)
    };
    let refusals = store.run("CheckSpellings", Mode::Long, None, spellings).await.map_err(failed)?;
    Ok(count + print(&refusals)?)
}

fn print(refusals: &[StoredViolation]) -> Result<u64, BoxError> {
    let mut out = stdout().lock();
    for StoredViolation { kind, key, name, field, why } in refusals {
        writeln!(out, "{kind} {key} \"{name}\" {field}: {why}")?;
    }
    Ok(refusals.len() as u64)
}

/// The resources that are served, each table once.
fn shapes() -> Vec<&'static Shape> {
    let mut shapes: Vec<&'static Shape> = Vec::new();
    for op in services().iter().filter(|service| !service.is_deprecated).flat_map(|service| service.all()) {
        if op.shape.base.is_none() && !shapes.iter().any(|shape| shape.table == op.shape.table) {
            shapes.push(op.shape);
        }
    }
    shapes
}
