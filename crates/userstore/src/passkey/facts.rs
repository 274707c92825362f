//! The facts for the assessment of users' readiness for a sign-in without a password, read for many users at
//! once.

use std::collections::HashMap;

use chancery_passkey::{
    AuthenticatorModels, CredentialFacts, Facts, PasswordFacts, Policy, Readiness, readiness,
};
use chancery_record::{Timestamp, Uuid, Value};
use chancery_resource::{Context, Problem, Sql, Tx, selectable};
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

selectable! {
    /// A user as it is stored.
    struct StoredUser<'r> from "FROM user_account t WHERE t.quarantined_on IS NULL AND t.store = " {
        rid: i64 = "t.rid",
        id: Uuid = "t.id",
        login_name: &'r str = "t.login_name",
        first_name: Option<&'r str> = "t.first_name",
        last_name: Option<&'r str> = "t.last_name",
        is_active: bool = "t.is_user_active",
        is_lock_enabled: bool = "t.is_user_lock_enabled",
        is_locked: bool = "t.is_user_locked",
        locked_until: Option<Timestamp> = "t.locked_until",
        is_initial_password: bool = "t.is_initial_password",
        is_change_required: bool = "t.is_password_change_required",
        never_expires: bool = "t.password_never_expires",
        expiration: Option<Timestamp> = "t.password_expiration",
    }
}

impl StoredUser<'_> {
    fn is_locked_at(&self, now: Timestamp) -> bool {
        self.is_lock_enabled && (self.is_locked || self.locked_until.is_some_and(|until| until > now))
    }

    fn has_expired_password(&self, now: Timestamp) -> bool {
        !self.never_expires && self.expiration.is_some_and(|end| end <= now)
    }

    fn display_name(&self) -> String {
        let names: Vec<&str> = [self.first_name, self.last_name].into_iter().flatten().collect();
        if names.is_empty() { self.login_name.to_owned() } else { names.join(" ") }
    }

    /// The user, with the facts that are stored in its row.
    fn person(&self, now: Timestamp) -> Person {
        Person {
            rid: self.rid,
            id: self.id,
            login_name: self.login_name.to_owned(),
            display_name: self.display_name(),
            facts: Facts {
                user_active: self.is_active,
                user_locked: self.is_locked_at(now),
                in_quarantine: false,
                password: PasswordFacts {
                    set: false,
                    initial: self.is_initial_password,
                    change_required: self.is_change_required,
                    expired: self.has_expired_password(now),
                    removed: false,
                },
                credentials: Vec::new(),
                verified_security_contacts: 0,
            },
        }
    }
}

/// Reads the users that a condition on `t` selects, at most `LIST` of them.
pub fn people(
    context: &Context,
    tx: &mut Tx<'_>,
    condition: impl FnOnce(Sql) -> Sql,
) -> Result<Vec<Person>, Problem> {
    let sql = condition(Sql::new(StoredUser::SELECT).bind(context.scope.store()));
    let mut people = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        people.push(StoredUser::read(row)?.person(context.now));
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

selectable! {
    /// The number of verified security contacts of a user.
    struct ContactCount from "FROM security_contact WHERE is_verified AND user_rid IN " {
        user: i64 = "user_rid",
        count: i64 = "count(*)",
    }
}

selectable! {
    /// A passkey of a user.
    struct StoredPasskey<'r> from "FROM passkey_credential WHERE user_rid IN " {
        user: i64 = "user_rid",
        aaguid: &'r [u8] = "aaguid",
        created_on: Timestamp = "created_on",
        last_used_on: Option<Timestamp> = "last_used_on",
        is_backed_up: bool = "is_backed_up",
        is_backup_eligible: bool = "is_backup_eligible",
    }
}

impl StoredPasskey<'_> {
    fn facts(&self, models: AuthenticatorModels<'_>) -> CredentialFacts {
        let aaguid = self.aaguid.try_into().unwrap_or_default();
        CredentialFacts {
            aaguid,
            created_on: self.created_on,
            last_used_on: self.last_used_on,
            is_backed_up: self.is_backed_up,
            is_backup_eligible: self.is_backup_eligible,
            has_undesired_status: models.is_undesired(aaguid),
        }
    }
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
        of_users(ContactCount::SELECT, &rids, " GROUP BY user_rid"),
        of_users(StoredPasskey::SELECT, &rids, ""),
    ];
    let statements: Vec<_> =
        statements.iter().map(|sql| (sql.text.as_str(), sql.parameters.as_slice())).collect();
    tx.query_all(&statements, &mut |index, row| {
        let Some(facts) = facts.get_mut(&row.int(0)?) else { return Ok(()) };
        match index {
            0 => facts.password.set = true,
            1 => facts.password.removed = true,
            2 => facts.verified_security_contacts = ContactCount::read(row)?.count,
            _ => facts.credentials.push(StoredPasskey::read(row)?.facts(models)),
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
