//! Client apps for the platform: the console, and client apps with a resource of the platform. A person who signs in to one
//! lends it administrative rights, so that an actor who controls its redirect URIs could gain these rights.

use chancery_record::Value;
use chancery_resource::{
    CONSOLE, CarriedBy, CarriedRole, Context, Lineage, Links, PLATFORM, Problem, Protection, RoleType, Sql,
    Tx,
};
use uuid::Uuid;

use super::ClientApp;

/// Only a SystemAdmin may change a client app for the platform, its children,
/// and its links from either side. Disabling it grants nothing.
pub static PROTECTION: Protection = Protection::new(find, CarriedBy::WhoLendsThem, &[], Links::AllBut(&[]))
    .may_be_switched_off(&[ClientApp::ENABLED.field()])
    .refuses_unchanged_sets();

fn find(_: &Context, tx: &mut Tx<'_>, apps: &[Uuid]) -> Result<Vec<CarriedRole>, Problem> {
    let mut found: Vec<Uuid> = apps.iter().copied().filter(|app| *app == CONSOLE).collect();
    let mut sql = Sql::new("SELECT DISTINCT client_app_id FROM client_app_resource WHERE client_app_id IN ");
    sql.add_list(apps.iter().copied().map(Value::Id));
    sql.add(" AND key IN ");
    sql.add_list(PLATFORM.iter().map(|key| Value::from(*key)));
    tx.query(&sql.text, &sql.parameters, |row| {
        found.push(row.id(0)?);
        Ok(())
    })?;
    let carried = |row| CarriedRole { row, role: RoleType::SystemAdmin, granted_for: Lineage::default() };
    Ok(found.into_iter().map(carried).collect())
}
