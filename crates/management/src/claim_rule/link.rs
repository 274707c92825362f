//! Links from claim rules to client apps: only for rules with a level of client apps.

use std::collections::HashSet;

use chancery_record::Value;
use chancery_resource::{LIST, Problem, Sql, Tx, selectable};

use super::RuleLevel;

/// Whether rules of this level apply to every client app.
pub fn has_no_client_apps(level: &str) -> bool {
    [RuleLevel::Subscription, RuleLevel::Tenant].iter().any(|known| known.name() == level)
}

/// The rules with linked client apps.
pub fn with_client_apps(tx: &mut Tx<'_>, rules: &[i64]) -> Result<HashSet<i64>, Problem> {
    let mut linked = HashSet::new();
    for chunk in rules.chunks(LIST) {
        let mut sql =
            Sql::new("SELECT DISTINCT claim_rule_rid FROM client_app_claim_rule WHERE claim_rule_rid IN ");
        sql.add_list(chunk.iter().copied().map(Value::Int));
        tx.query(&sql.text, &sql.parameters, |row| {
            linked.insert(row.int(0)?);
            Ok(())
        })?;
    }
    Ok(linked)
}

selectable! {
    /// A claim rule with its level.
    struct LevelOfRule<'r> from "FROM claim_rule WHERE rid IN " {
        name: &'r str = "name",
        level: &'r str = "rule_level",
    }
}

/// Refuses links of client apps to rules with a level that does not allow them.
///
/// # Errors
/// The level of a rule does not allow client apps.
pub fn take_client_apps(tx: &mut Tx<'_>, rules: &[i64]) -> Result<(), Problem> {
    for chunk in rules.chunks(LIST) {
        let mut sql = Sql::new(LevelOfRule::SELECT);
        sql.add_list(chunk.iter().copied().map(Value::Int));
        let mut refused = None;
        tx.query(&sql.text, &sql.parameters, |row| {
            let LevelOfRule { name, level } = LevelOfRule::read(row)?;
            if has_no_client_apps(level) {
                refused =
                    Some(format!("The claim rule {name:?} takes no client apps: it is of level {level}."));
            }
            Ok(())
        })?;
        if let Some(detail) = refused {
            return Err(Problem::invalid(detail));
        }
    }
    Ok(())
}
