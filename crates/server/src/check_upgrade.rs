//! `chancery check-upgrade`: the rows of a database that this release would refuse.

use std::{
    io::{Write as _, stderr, stdout},
    process::ExitCode,
};

use chancery_management::upgrade;
use chancery_resource::{MasterKey, Problem, Shape, StoredRefusal};
use chancery_store::{Mode, Settings, Store};

use crate::{
    Arguments, Config,
    start::{cause_of, read_master_key, services},
};

/// What explains the command.
pub const CHECK_UPGRADE_HELP: &str = "\
Run it with the new program before an upgrade, beside the old server or without one. It reads the database as
it is, whatever the release that made it, and changes nothing: every row of a resource, as far as the rules by
which this release takes a write. Each line names a row and a field: kind, id, name, field, and what is wrong.
Such a row stays, is shown, and may be sent back as it is. What it is for can stop working: a redirect URI that
is not taken is not used, an option that is not taken has its default, a view that is not taken is shown as far
as it is allowed. Needs the database and the master key; run it as the server's user.

Exit status: 0 there is none; 1 there are some; 2 it could not be checked.

Example:
  chancery --config chancery.toml check-upgrade";

/// Runs the command.
pub fn check_upgrade(arguments: &Arguments) -> ExitCode {
    match run(arguments) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "chancery: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<u64, String> {
    let config = Config::read(arguments).map_err(|error| error.to_string())?;
    let master = read_master_key(&config.master_key_file).map_err(|error| error.to_string())?;
    let settings = Settings { connections: 1, ..config.store };
    let store = Store::open_older_to_read(&config.database, settings)
        .map_err(|error| format!("cannot open the database: {error}"))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let found = runtime.block_on(find(&store, &master));
    store.close();
    let found = found?;
    let told = match found {
        0 => "this release refuses nothing that is stored".to_owned(),
        1 => "this release would refuse one value that is stored".to_owned(),
        more => format!("this release would refuse {more} values that are stored"),
    };
    let _ = writeln!(stderr(), "{told}");
    Ok(found)
}

/// Finds and prints what is refused; how many there are.
async fn find(store: &Store, master: &MasterKey) -> Result<u64, String> {
    let failed = |problem: Problem| format!("cannot read the database: {}", cause_of(problem));
    let mut found = 0;
    for shape in shapes() {
        let mut after = Some(0);
        while let Some(rid) = after.take() {
            let master = master.clone();
            let judge = move |tx: &mut chancery_store::Tx<'_>| {
                let mut refusals = Vec::new();
                let tell = &mut |refusal| refusals.push(refusal);
                let last = shape.judge_stored(tx, &master, rid, upgrade::refusals, tell)?;
                Ok::<_, Problem>((last, refusals))
            };
            let (last, refusals) =
                store.run("CheckUpgrade", Mode::Long, None, judge).await.map_err(failed)?;
            found += print(&refusals)?;
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
    Ok(found + print(&refusals)?)
}

fn print(refusals: &[StoredRefusal]) -> Result<u64, String> {
    let mut out = stdout().lock();
    for StoredRefusal { kind, key, name, field, why } in refusals {
        writeln!(out, "{kind} {key} \"{name}\" {field}: {why}").map_err(|error| error.to_string())?;
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
