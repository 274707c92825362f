//! The facts for the assessment of users' readiness for a sign-in without a password, read for many users at
//! once.

use std::collections::HashMap;

use chancery_passkey::{
    AuthenticatorModels, CredentialFacts, Facts, PasswordFacts, Policy, Readiness, readiness,
};
use chancery_record::{Timestamp, Uuid, Value};
use chancery_resource::{Context, Problem, Row, Sql, Tx};
use serde_json::{Value as Json, json};

use super::{authenticator_model, policy};

/// A user with the facts of their readiness.
pub struct Person {
    pub rid: i64,
    pub id: Uuid,
    login_name: String,
    display_name: String,
    facts: Facts,
}

impl Person {
    /// The member `user` of an overview.
    pub fn user(&self) -> Json {
        json!({ "id": self.id, "loginName": self.login_name, "displayName": self.display_name })
    }

    /// The member `readiness` of an overview, and whether the user is ready.
    pub fn readiness(&self, policy: &Policy, now: Timestamp) -> (Json, bool) {
        let assessment = self.assess(policy, now);
        (to_json(self.id, &assessment), assessment.ready_for_password_removal)
    }

    /// The readiness of the user.
    pub fn assess(&self, policy: &Policy, now: Timestamp) -> Readiness {
        readiness(policy, &self.facts, now)
    }
}

fn to_json(id: Uuid, assessment: &Readiness) -> Json {
    json!({
        "userId": id,
        "passwordCredentialStatus": assessment.password_credential_status,
        "primaryAuthenticationStatus": assessment.primary_authentication_status,
        "usableCredentialCount": assessment.usable_credential_count,
        "requiredCredentialCount": assessment.required_credential_count,
        "verifiedSecurityContactCount": assessment.verified_security_contact_count,
        "requiredVerifiedSecurityContactCount": assessment.required_verified_security_contact_count,
        "credentialDiversitySatisfied": assessment.credential_diversity_satisfied,
        "recoveryRouteOperational": assessment.recovery_route_operational,
        "matureBindingLineageAvailable": assessment.mature_binding_lineage_available,
        "readyForPasswordRemoval": assessment.ready_for_password_removal,
        "blockingReasons": assessment.blocking_reasons,
        "policyFingerprint": assessment.policy_fingerprint,
    })
}

const USERS: &str = "SELECT t.rid, t.id, t.login_name, t.first_name, t.last_name, t.is_user_active, \
    t.is_user_lock_enabled, t.is_user_locked, t.locked_until, t.is_initial_password, \
    t.is_password_change_required, t.password_never_expires, t.password_expiration \
    FROM user_account t WHERE t.quarantined_on IS NULL AND t.store = ";

fn time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>, chancery_resource::StoreError> {
    if row.is_null(column)? { Ok(None) } else { row.int(column).map(|moment| Some(Timestamp(moment))) }
}

fn read_person(row: &Row<'_>, now: Timestamp) -> Result<Person, chancery_resource::StoreError> {
    let login_name = row.text(2)?.to_owned();
    let mut names = Vec::new();
    for column in [3, 4] {
        if !row.is_null(column)? {
            names.push(row.text(column)?.to_owned());
        }
    }
    let locks = row.bool(6)?;
    let locked = locks && (row.bool(7)? || time(row, 8)?.is_some_and(|until| until > now));
    let expired = !row.bool(11)? && time(row, 12)?.is_some_and(|end| end <= now);
    Ok(Person {
        rid: row.int(0)?,
        id: row.id(1)?,
        display_name: if names.is_empty() { login_name.clone() } else { names.join(" ") },
        login_name,
        facts: Facts {
            user_active: row.bool(5)?,
            user_locked: locked,
            in_quarantine: false,
            password: PasswordFacts {
                set: false,
                initial: row.bool(9)?,
                change_required: row.bool(10)?,
                expired,
                removed: false,
            },
            credentials: Vec::new(),
            verified_security_contacts: 0,
        },
    })
}

/// Reads the users that a condition on `t` selects, at most `LIST` of them.
pub fn people(
    context: &Context,
    tx: &mut Tx<'_>,
    condition: impl FnOnce(Sql) -> Sql,
) -> Result<Vec<Person>, Problem> {
    let sql = condition(Sql::new(USERS).bind(context.scope.store()));
    let mut people = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        people.push(read_person(row, context.now)?);
        Ok(())
    })?;
    if !people.is_empty() {
        let snapshot = authenticator_model::snapshot(context, tx)?;
        add_credentials(tx, &mut people, AuthenticatorModels::new(snapshot.as_deref(), context.now))?;
    }
    Ok(people)
}

fn of_users(text: &str, rids: &[i64], rest: &str) -> Sql {
    let mut sql = Sql::new(text);
    sql.add_list(rids.iter().copied().map(Value::Int));
    sql.push(rest)
}

fn add_credentials(
    tx: &mut Tx<'_>,
    people: &mut [Person],
    models: AuthenticatorModels<'_>,
) -> Result<(), Problem> {
    let rids: Vec<i64> = people.iter().map(|person| person.rid).collect();
    let mut facts: HashMap<i64, &mut Facts> =
        people.iter_mut().map(|person| (person.rid, &mut person.facts)).collect();
    let statements = [
        of_users("SELECT user_rid FROM user_password WHERE user_rid IN ", &rids, ""),
        of_users("SELECT user_rid FROM removed_password WHERE user_rid IN ", &rids, ""),
        of_users(
            "SELECT user_rid, count(*) FROM security_contact WHERE is_verified AND user_rid IN ",
            &rids,
            " GROUP BY user_rid",
        ),
        of_users(
            "SELECT user_rid, aaguid, created_on, last_used_on, is_backed_up, is_backup_eligible \
             FROM passkey_credential WHERE user_rid IN ",
            &rids,
            "",
        ),
    ];
    let statements: Vec<_> =
        statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
    tx.query_all(&statements, &mut |index, row| {
        let Some(facts) = facts.get_mut(&row.int(0)?) else { return Ok(()) };
        match index {
            0 => facts.password.set = true,
            1 => facts.password.removed = true,
            2 => facts.verified_security_contacts = row.int(1)?,
            _ => {
                let aaguid = row.bytes(1)?.try_into().unwrap_or_default();
                facts.credentials.push(CredentialFacts {
                    aaguid,
                    created_on: Timestamp(row.int(2)?),
                    last_used_on: time(row, 3)?,
                    is_backed_up: row.bool(4)?,
                    is_backup_eligible: row.bool(5)?,
                    has_undesired_status: models.is_undesired(aaguid),
                });
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// The reasons that block each of these users, at most `LIST` of them, from a sign-in without a password, by row number.
pub fn blocking_reasons(
    context: &Context,
    tx: &mut Tx<'_>,
    rids: &[i64],
) -> Result<HashMap<i64, Vec<&'static str>>, Problem> {
    let policy = policy(context)?;
    let people_in_scope = people(context, tx, |mut sql| {
        sql.add(" AND t.rid IN ");
        sql.add_list(rids.iter().copied().map(Value::Int));
        sql
    })?;
    let assessment =
        people_in_scope.iter().map(|one| (one.rid, one.assess(&policy, context.now).blocking_reasons));
    Ok(assessment.collect())
}
