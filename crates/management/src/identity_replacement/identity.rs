//! The identities of a platform user in a replacement: reserved, released, exchanged. Each change has an
//! audit entry of its own.

use std::collections::HashMap;

use chancery_application::{
    APPLICATION_IDENTITY, APPLICATION_USER, ApplicationIdentity, ApplicationIdentityId, ApplicationUser,
    LifecycleStatus,
};
use chancery_record::{Name, OptionValue, Record as _, Uuid, Value, parse_id};
use chancery_resource::settings::{Options, ProviderOption, UserStoreOption};
use chancery_resource::{
    AuditAction, Context, OwnerRow, Problem, StoredRow, Tx, delete, insert, load, load_by, load_hidden,
    select_of, selectable, update_unversioned,
};

use super::record::{IdentityReplacement, NewIdentityReplacement};
use crate::idp_instance::{IDP_INSTANCE, IdpInstance};

/// A platform user, as the owner of identities.
pub struct PlatformUser {
    /// Its row.
    pub row: StoredRow,
    /// The row as the owner of its identities.
    owner: OwnerRow,
    /// Whether the mirrored user is in the deletion quarantine.
    pub is_hidden: bool,
}

/// The identity that is to replace the current one.
pub struct TargetIdentity {
    pub instance: Uuid,
    pub issuer: OptionValue,
    pub subject: Name,
    pub is_user_store: bool,
}

/// A problem of status 404 as `None`.
pub fn optional<T>(found: Result<T, Problem>) -> Result<Option<T>, Problem> {
    match found {
        Err(problem) if problem.status() == 404 => Ok(None),
        found => found.map(Some),
    }
}

impl PlatformUser {
    /// A platform user in the caller's scope, hidden or not.
    pub fn find(context: &Context, tx: &mut Tx<'_>, id: Uuid) -> Result<Self, Problem> {
        let (row, is_hidden) = match optional(load(context, tx, &APPLICATION_USER, None, Value::Id(id)))? {
            Some(row) => (row, false),
            None => (load_hidden(context, tx, &APPLICATION_USER, Value::Id(id))?, true),
        };
        let owner = row.as_owner(&APPLICATION_USER)?;
        Ok(Self { row, owner, is_hidden })
    }

    fn identity(
        &self,
        context: &Context,
        tx: &mut Tx<'_>,
        id: ApplicationIdentityId,
    ) -> Result<Option<StoredRow>, Problem> {
        optional(load(context, tx, &APPLICATION_IDENTITY, Some(&self.owner), Value::Id(id.0)))
    }

    /// The platform user's active identity, preferably at its home instance.
    pub fn current(&self, context: &mut Context, tx: &mut Tx<'_>) -> Result<ApplicationIdentityId, Problem> {
        let home_instance = self.row.get(ApplicationUser::IDP_INSTANCE_ID)?;
        let found = context.on_configuration(|context| {
            let sql =
                select_of(context, &APPLICATION_IDENTITY, &self.owner).push(" AND t.lifecycle_status = ");
            let sql =
                sql.bind(LifecycleStatus::Active.name()).push(" ORDER BY CASE WHEN t.idp_instance_id = ");
            let sql = sql.bind(home_instance).push(" THEN 0 ELSE 1 END, t.rid LIMIT 1");
            optional(load_by(context, tx, &APPLICATION_IDENTITY, Some(&self.owner), &sql))
        })?;
        let found = found.map(|row| ApplicationIdentity::from_values(row.values)).transpose()?;
        let none = || Problem::conflict("The platform user has no active identity that could be replaced.");
        found.map(|identity| identity.id).ok_or_else(none)
    }

    /// Creates the new identity as pending, or makes an old one of the platform user pending again, so that
    /// no other platform user gets it while the request is open.
    pub fn reserve(
        &self,
        context: &mut Context,
        tx: &mut Tx<'_>,
        target: &TargetIdentity,
    ) -> Result<ApplicationIdentityId, Problem> {
        let known = holder(tx, target)?;
        let Some(Holder { identity, owner, status }) = known else {
            let id = ApplicationIdentityId(context.new_id());
            let identity = ApplicationIdentity {
                id,
                owner_id: self.owner.id,
                idp_instance_id: target.instance,
                issuer: target.issuer.clone(),
                subject: target.subject.clone(),
                is_user_store_identity: target.is_user_store,
                lifecycle_status: LifecycleStatus::Pending,
                set_by: None,
                set_on: None,
            };
            insert(context, tx, &APPLICATION_IDENTITY, Some(&self.owner), &identity.into_values())?;
            return Ok(id);
        };
        if owner != self.owner.rid {
            return Err(Problem::conflict("The replacement identity belongs to another platform user."));
        }
        if status == LifecycleStatus::Active.name() || status == LifecycleStatus::Pending.name() {
            return Err(Problem::conflict("The platform user has the replacement identity already."));
        }
        let id = ApplicationIdentityId(identity);
        let person = self.owner.id;
        context.on_configuration(|context| {
            let row = load(context, tx, &APPLICATION_IDENTITY, Some(&self.owner), Value::Id(identity))?;
            change(context, tx, &row, |identity| {
                identity.issuer = target.issuer.clone();
                identity.lifecycle_status = LifecycleStatus::Pending;
                // the subject does not change, but the requester links it again
                identity.set_by = context.setter_for(person);
                identity.set_on = Some(context.now);
            })
        })?;
        Ok(id)
    }

    /// Releases the new identity of a request that ends without a replacement: it is deleted, unless the
    /// platform user had it before.
    pub fn release(
        &self,
        context: &mut Context,
        tx: &mut Tx<'_>,
        replacement: &IdentityReplacement,
    ) -> Result<(), Problem> {
        let id = replacement.replacement_identity_id;
        context.on_configuration(|context| {
            let Some(row) = self.identity(context, tx, id)?.filter(is_pending) else { return Ok(()) };
            let text = "SELECT 1 FROM identity_replacement WHERE current_identity_id = ?1 AND executed_on IS NOT NULL";
            if tx.one(text, &[Value::Id(id.0)], |_| Ok(()))?.is_some() {
                change(context, tx, &row, |identity| identity.lifecycle_status = LifecycleStatus::Replaced)
            } else {
                delete(context, tx, &APPLICATION_IDENTITY, &row)
            }
        })
    }

    /// Makes the old identity replaced and the new one active.
    pub fn exchange(
        &self,
        context: &mut Context,
        tx: &mut Tx<'_>,
        replacement: &IdentityReplacement,
    ) -> Result<(), Problem> {
        let gone = |which| {
            Problem::conflict(format!(
                "The {which} identity has changed. Cancel the replacement and request it again."
            ))
        };
        context.on_configuration(|context| {
            let old = self.identity(context, tx, replacement.current_identity_id)?.filter(is_active);
            let old = old.ok_or_else(|| gone("current"))?;
            let new = self.identity(context, tx, replacement.replacement_identity_id)?.filter(is_pending);
            let new = new.ok_or_else(|| gone("replacement"))?;
            change(context, tx, &old, |identity| identity.lifecycle_status = LifecycleStatus::Replaced)?;
            change(context, tx, &new, |identity| identity.lifecycle_status = LifecycleStatus::Active)
        })
    }
}

fn has_status(row: &StoredRow, status: LifecycleStatus) -> bool {
    row.text(ApplicationIdentity::LIFECYCLE_STATUS) == Some(status.name())
}

fn is_active(row: &StoredRow) -> bool {
    has_status(row, LifecycleStatus::Active)
}

fn is_pending(row: &StoredRow) -> bool {
    has_status(row, LifecycleStatus::Pending)
}

fn change(
    context: &Context,
    tx: &mut Tx<'_>,
    row: &StoredRow,
    change: impl FnOnce(&mut ApplicationIdentity),
) -> Result<(), Problem> {
    let mut identity = ApplicationIdentity::from_values(row.values.clone())?;
    change(&mut identity);
    let audit = AuditAction::UPDATED;
    update_unversioned(context, tx, &APPLICATION_IDENTITY, row, &identity.into_values(), audit)
}

selectable! {
    /// The holder of an identity in any lifecycle status.
    pub struct Holder from "FROM application_identity WHERE idp_instance_id = ?1 AND subject = ?2" {
        pub identity: Uuid = "id",
        owner: i64 = "application_user_rid",
        status: String = "lifecycle_status",
    }
}

/// The holder of the target identity, if it exists already.
pub fn holder(tx: &mut Tx<'_>, target: &TargetIdentity) -> Result<Option<Holder>, Problem> {
    let key = [Value::Id(target.instance), target.subject.as_str().into()];
    Ok(tx.one(Holder::SELECT, &key, Holder::read)?)
}

/// The identity that a body requests.
pub fn requested_identity(
    context: &Context,
    tx: &mut Tx<'_>,
    form: &NewIdentityReplacement,
) -> Result<TargetIdentity, Problem> {
    let instance = form.replacement_idp_instance_id.0;
    let found = optional(load(context, tx, &IDP_INSTANCE, None, Value::Id(instance)))?;
    let found = found.ok_or_else(|| {
        Problem::wrong_field(NewIdentityReplacement::REPLACEMENT_IDP_INSTANCE_ID, "names no IdpInstance")
    })?;
    let is_user_store = found.text(IdpInstance::STORE_NAME_KEY).is_some();
    if form.is_user_store_identity.is_some_and(|said| said != is_user_store) {
        let is = if is_user_store { "true: the instance is" } else { "false: the instance is not" };
        return Err(Problem::wrong_field(
            NewIdentityReplacement::IS_USER_STORE_IDENTITY,
            format!("must be {is} a user store"),
        ));
    }
    let given = form.replacement_issuer.clone().filter(|issuer| !issuer.as_str().is_empty());
    let subject = form.replacement_subject.clone().unwrap_or_else(|| form.replacement_unique_user_id.clone());
    if !is_user_store {
        let authority = option_of(tx, instance, ProviderOption::AUTHORITY.name())?.unwrap_or_default();
        let issuer = given.or_else(|| OptionValue::new(authority).ok());
        let missing = || {
            Problem::wrong_field(
                NewIdentityReplacement::REPLACEMENT_ISSUER,
                "is missing: the instance has no Authority",
            )
        };
        return Ok(TargetIdentity { instance, issuer: issuer.ok_or_else(missing)?, subject, is_user_store });
    }
    let subject = user_of(tx, instance, &form.replacement_unique_user_id, &subject)?;
    let setting = UserStoreOption::CLAIM_ISSUER;
    let values = option_of(tx, instance, setting.name())?.map(|value| (setting.name().to_owned(), value));
    let options = Options::<UserStoreOption>::new(HashMap::from_iter(values));
    let issuer = options.get(setting);
    if given.is_some_and(|given| given.as_str() != issuer) {
        return Err(Problem::wrong_field(
            NewIdentityReplacement::REPLACEMENT_ISSUER,
            format!("must be {issuer:?}, as the store's ClaimIssuer"),
        ));
    }
    let wrong = |wrong| Problem::wrong_field(NewIdentityReplacement::REPLACEMENT_ISSUER, wrong);
    Ok(TargetIdentity { instance, issuer: OptionValue::new(issuer).map_err(wrong)?, subject, is_user_store })
}

/// The subject of an identity in a user store: the id of an existing user.
fn user_of(tx: &mut Tx<'_>, instance: Uuid, unique: &Name, subject: &Name) -> Result<Name, Problem> {
    let no_user = || {
        Problem::wrong_field(
            NewIdentityReplacement::REPLACEMENT_UNIQUE_USER_ID,
            "names no User of the instance",
        )
    };
    let user = parse_id(unique.as_str()).ok_or_else(no_user)?;
    if parse_id(subject.as_str()) != Some(user) {
        return Err(Problem::wrong_field(
            NewIdentityReplacement::REPLACEMENT_SUBJECT,
            "must be the user's id, as replacementUniqueUserId",
        ));
    }
    if !is_present(tx, instance, user)? {
        return Err(no_user());
    }
    Name::new(user.to_string())
        .map_err(|wrong| Problem::wrong_field(NewIdentityReplacement::REPLACEMENT_UNIQUE_USER_ID, wrong))
}

/// Whether a user store has this user, not in the deletion quarantine.
pub fn is_present(tx: &mut Tx<'_>, instance: Uuid, user: Uuid) -> Result<bool, Problem> {
    let text = "SELECT 1 FROM user_account u JOIN idp_instance i ON i.rid = u.store \
                WHERE i.id = ?1 AND u.id = ?2 AND u.quarantined_on IS NULL";
    Ok(tx.one(text, &[Value::Id(instance), Value::Id(user)], |_| Ok(()))?.is_some())
}

fn option_of(tx: &mut Tx<'_>, instance: Uuid, name: &str) -> Result<Option<String>, Problem> {
    let text = "SELECT value FROM option_value WHERE apply_to_idp_instance_id = ?1 AND name = ?2";
    Ok(tx.one(text, &[Value::Id(instance), name.into()], |row| Ok(row.text(0)?.to_owned()))?)
}
