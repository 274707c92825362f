//! The person who signs in: the platform user behind a user of a store, and whether that person is admitted.

pub mod audit_entry;
pub mod consent;
pub mod context;
pub mod due_questions;
pub mod external_claims;
pub mod names;
pub mod own_user;
pub mod user_subject;

use std::collections::HashSet;

use chancery_credential::lockout::State;
use chancery_flow::NotAdmitted;
use chancery_record::{Timestamp, Value};
use chancery_resource::{Context, Problem, StoreError, Tx};
use chancery_store::selectable;
use chancery_userstore::user::{Admission, MIRROR, PasswordDue, PasswordTerms};
use uuid::Uuid;

use crate::client_app::{Application, OfferedStore};

/// The platform user with an Active identity for this user of a store. One is created if there is none yet and the
/// store permits it.
pub fn of_store_user(
    context: &mut Context,
    tx: &mut Tx<'_>,
    store: &OfferedStore,
    user: Uuid,
) -> Result<Option<Uuid>, Problem> {
    match find(tx, store.id, &user.to_string())? {
        Identity::Active(person) => Ok(Some(person)),
        Identity::Unknown if store.creates_platform_users => {
            MIRROR.follow(context, tx, store.subscription, user)
        }
        Identity::Unknown | Identity::Inactive => Ok(None),
    }
}

/// The platform user with an Active identity for this user of a store, if there is one.
pub fn active_person(tx: &mut Tx<'_>, instance: Uuid, user: Uuid) -> Result<Option<Uuid>, StoreError> {
    let identity = find(tx, instance, &user.to_string())?;
    Ok(if let Identity::Active(person) = identity { Some(person) } else { None })
}

/// The maximum of identities that are read of a person.
const MAX_IDENTITIES: usize = 1000;

/// The instances at which a person has an Active identity.
pub fn instances_of(tx: &mut Tx<'_>, person: Uuid) -> Result<HashSet<Uuid>, StoreError> {
    let text = format!(
        "SELECT i.idp_instance_id FROM application_identity i JOIN application_user u ON u.rid = i.application_user_rid \
         WHERE u.id = ?1 AND u.hidden_on IS NULL AND i.lifecycle_status = 'Active' LIMIT {MAX_IDENTITIES}"
    );
    let mut instances = HashSet::new();
    tx.query(&text, &[person.into()], |row| {
        instances.insert(row.id(0)?);
        Ok(())
    })?;
    Ok(instances)
}

/// Names an identity: the platform user, and the instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdentityKey {
    /// The platform user.
    pub person: Uuid,
    /// The instance.
    pub instance: Uuid,
}

/// The identity of a subject at an instance, on the platform.
pub enum Identity {
    /// It does not exist yet.
    Unknown,
    /// It is Active and belongs to this platform user, who is not hidden.
    Active(Uuid),
    /// It is not Active, or its owner is hidden.
    Inactive,
}

selectable! {
    /// The owner of an identity, and whether the identity counts.
    struct OwnedIdentity<'r> from "FROM application_identity i \
        JOIN application_user u ON u.rid = i.application_user_rid WHERE i.idp_instance_id = ?1 AND i.subject = ?2" {
        person: Uuid = "u.id",
        lifecycle_status: &'r str = "i.lifecycle_status",
        hidden_on: Option<Timestamp> = "u.hidden_on",
    }
}

/// The identity of a subject at an instance.
pub fn find(tx: &mut Tx<'_>, instance: Uuid, subject: &str) -> Result<Identity, StoreError> {
    let identity = tx.one(OwnedIdentity::SELECT, &[Value::Id(instance), subject.into()], |row| {
        let OwnedIdentity { person, lifecycle_status, hidden_on } = OwnedIdentity::read(row)?;
        let counts = lifecycle_status == "Active" && hidden_on.is_none();
        Ok(if counts { Identity::Active(person) } else { Identity::Inactive })
    });
    Ok(identity?.unwrap_or(Identity::Unknown))
}

/// A person who is admitted to a client app.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The row number of the platform user.
    pub person: i64,
    /// The user of the store by which the person signed in; `None` where the person came by an external identity provider.
    pub user: Option<StoreUser>,
    /// The login name; of external users the nearest equivalent.
    pub login_name: String,
    /// How the person can be reached.
    pub contact: Contact,
}

/// The store's user of a person.
#[derive(Clone, Debug)]
pub struct StoreUser {
    /// The row number of the store.
    pub store: i64,
    /// The row number of the user.
    pub user: i64,
    /// The user's id.
    pub user_id: Uuid,
    /// The state of the password, for sign-ins with it.
    pub password: PasswordDue,
    /// Whether the user is temporarily locked.
    pub is_locked_for_now: bool,
}

/// The contact data of a person.
#[derive(Clone, Debug, Default)]
pub struct Contact {
    /// The e-mail address.
    pub email: Option<String>,
    /// Whether the person is known to own it.
    pub is_email_confirmed: bool,
    /// The telephone number, if the person is known to own it.
    pub phone: Option<String>,
    /// The language.
    pub locale: Option<String>,
}

selectable! {
    /// The row of an identity.
    struct IdentityRow from "FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.idp_instance_id = ?2 \
        AND i.lifecycle_status = 'Active' JOIN idp_instance o ON o.id = i.idp_instance_id AND o.is_active \
        WHERE u.id = ?1 AND u.hidden_on IS NULL" {
        subscription: Uuid = "u.subscription_id",
        subject: String = "i.subject",
        instance: i64 = "o.rid",
        is_authorized: bool = "EXISTS (SELECT 1 FROM client_app_authorized_user z \
            WHERE z.client_app_rid = ?3 AND z.application_user_rid = u.rid)",
        person: i64 = "u.rid",
        is_of_store: bool = "o.store_name_key IS NOT NULL",
        /// Of external users: whether a directory permits sign-ins, and their names.
        is_active: bool = "u.is_active",
        email: Option<String> = "u.email_address",
        user_name: Option<String> = "u.user_name",
    }
}

impl IdentityRow {
    /// The person, if the user behind the identity may sign in.
    fn admitted(self, tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Admitted>, StoreError> {
        if self.is_of_store {
            let Ok(subject) = Uuid::try_parse(&self.subject) else { return Ok(None) };
            return find_user(tx, self.person, self.instance, subject, now);
        }
        if !self.is_active {
            return Ok(None);
        }
        Ok(Some(Admitted {
            person: self.person,
            user: None,
            login_name: self.user_name.or_else(|| self.email.clone()).unwrap_or(self.subject),
            contact: Contact { email: self.email, ..Contact::default() },
        }))
    }
}

/// Whether a person is admitted to a client app in a tenant, by an identity at an instance of both. A temporary lock
/// does not end sessions: otherwise anyone could sign people out by wrong passwords. It blocks sign-ins by password,
/// which check it themselves.
pub fn admit(
    tx: &mut Tx<'_>,
    application: &Application,
    identity: IdentityKey,
    tenant: Uuid,
    now: Timestamp,
) -> Result<Result<Admitted, NotAdmitted>, StoreError> {
    let instance = identity.instance;
    if !has_instance(tx, application, tenant, instance)? {
        return Ok(Err(NotAdmitted::NoIdentity));
    }
    let Some(identity) = find_identity(tx, application, identity)? else {
        return Ok(Err(NotAdmitted::NoIdentity));
    };
    let (is_authorized, subscription) = (identity.is_authorized, identity.subscription);
    let Some(admitted) = identity.admitted(tx, now)? else {
        return Ok(Err(NotAdmitted::Account));
    };
    if !application.allow_cross_subscription && subscription != application.subscription {
        return Ok(Err(NotAdmitted::OtherSubscription));
    }
    if application.is_restricted
        && !is_authorized
        && !is_in_authorized_group(tx, application, instance, &admitted)?
    {
        return Ok(Err(NotAdmitted::Restricted));
    }
    let provider = application.tenant(tenant).and_then(|tenant| tenant.provider(instance));
    let mut admitted = admitted;
    admitted.contact.is_email_confirmed |= provider.is_some_and(|provider| provider.is_trusted);
    Ok(Ok(admitted))
}

/// Whether client app and tenant have the instance. One that is closed by an error in its options is not offered, but
/// ends no session.
fn has_instance(
    tx: &mut Tx<'_>,
    application: &Application,
    tenant: Uuid,
    instance: Uuid,
) -> Result<bool, StoreError> {
    if application.tenant(tenant).is_some_and(|tenant| tenant.offered(instance).is_some()) {
        return Ok(true);
    }
    let text = "SELECT 1 FROM idp_instance i JOIN idp_instance_client_app m ON m.idp_instance_rid = i.rid \
        JOIN tenant_idp_instance n ON n.idp_instance_rid = i.rid JOIN tenant t ON t.rid = n.tenant_rid \
        WHERE i.id = ?1 AND m.client_app_rid = ?2 AND t.id = ?3";
    let parameters = [instance.into(), application.rid.into(), tenant.into()];
    Ok(tx.one(text, &parameters, |_| Ok(()))?.is_some())
}

fn find_identity(
    tx: &mut Tx<'_>,
    application: &Application,
    identity: IdentityKey,
) -> Result<Option<IdentityRow>, StoreError> {
    let key = [identity.person.into(), identity.instance.into(), application.rid.into()];
    tx.one(IdentityRow::SELECT, &key, IdentityRow::read)
}

selectable! {
    /// The row of a store's user.
    struct UserRow<'r> from "FROM user_account WHERE store = ?1 AND id = ?2 AND quarantined_on IS NULL" {
        rid: i64 = "rid",
        login_name: &'r str = "login_name",
        is_active: bool = "is_user_active",
        valid_from: Option<Timestamp> = "user_valid_from",
        valid_to: Option<Timestamp> = "user_valid_to",
        is_lock_enabled: bool = "is_user_lock_enabled",
        is_locked: bool = "is_user_locked",
        locked_until: Option<Timestamp> = "locked_until",
        must_change_password: bool = "is_password_change_required OR is_initial_password",
        password_never_expires: bool = "password_never_expires",
        password_expires_on: Option<Timestamp> = "password_expiration",
        can_change_expired_password: bool = "can_change_password_on_expiration",
        email: Option<&'r str> = "email_address",
        is_email_confirmed: bool = "email_address_confirmed",
        phone: Option<&'r str> = "phone_number",
        is_phone_confirmed: bool = "phone_number_confirmed",
        locale: Option<&'r str> = "locale",
    }
}

impl UserRow<'_> {
    const fn admission(&self) -> Admission {
        Admission { is_active: self.is_active, valid_from: self.valid_from, valid_to: self.valid_to }
    }

    fn lockout(&self) -> State {
        State {
            is_lock_enabled: self.is_lock_enabled,
            is_locked: self.is_locked,
            locked_until: self.locked_until,
            ..State::default()
        }
    }

    const fn password(&self) -> PasswordTerms {
        PasswordTerms {
            must_be_changed: self.must_change_password,
            never_expires: self.password_never_expires,
            expires_on: self.password_expires_on,
            can_change_expired: self.can_change_expired_password,
        }
    }

    fn contact(&self) -> Contact {
        let phone = self.phone.filter(|_| self.is_phone_confirmed);
        Contact {
            email: self.email.map(str::to_owned),
            is_email_confirmed: self.is_email_confirmed,
            phone: phone.map(str::to_owned),
            locale: self.locale.map(str::to_owned),
        }
    }
}

/// A store's user who may sign in now, apart from a temporary lock.
fn find_user(
    tx: &mut Tx<'_>,
    person: i64,
    store: i64,
    id: Uuid,
    now: Timestamp,
) -> Result<Option<Admitted>, StoreError> {
    let admitted = tx.one(UserRow::SELECT, &[store.into(), id.into()], |row| {
        let row = UserRow::read(row)?;
        let lockout = row.lockout();
        if !row.admission().holds(now) || lockout.is_locked_permanently() {
            return Ok(None);
        }
        let user = StoreUser {
            store,
            user: row.rid,
            user_id: id,
            password: row.password().due(now),
            is_locked_for_now: lockout.is_locked_temporarily(now),
        };
        let login_name = row.login_name.to_owned();
        Ok(Some(Admitted { person, user: Some(user), login_name, contact: row.contact() }))
    });
    admitted.map(Option::flatten)
}

/// The groups of a store's user at any depth, each once: as `all_groups`. Few groups are nested, so only parents are
/// found recursively.
const ALL_GROUPS: &str = "WITH RECURSIVE above (rid) AS (SELECT e.parent_rid FROM group_member m \
    JOIN group_edge e ON e.child_rid = m.group_rid WHERE m.user_rid = ?1 \
    UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid), \
    all_groups (rid) AS (SELECT m.group_rid FROM group_member m WHERE m.user_rid = ?1 UNION ALL SELECT a.rid FROM above a \
    WHERE NOT EXISTS (SELECT 1 FROM group_member m WHERE m.group_rid = a.rid AND m.user_rid = ?1))";
/// The maximum of groups that are read.
const MAX_GROUPS: usize = 10_000;

fn is_in_authorized_group(
    tx: &mut Tx<'_>,
    application: &Application,
    instance: Uuid,
    admitted: &Admitted,
) -> Result<bool, StoreError> {
    let Some(user) = &admitted.user else {
        let text = "SELECT EXISTS (SELECT 1 FROM client_app_authorized_group z JOIN application_group_member m \
            ON m.application_group_rid = z.application_group_rid \
            WHERE z.client_app_rid = ?1 AND m.application_user_rid = ?2)";
        let key = [application.rid.into(), admitted.person.into()];
        return Ok(tx.one(text, &key, |row| row.bool(0))? == Some(true));
    };
    let text = "SELECT i.subject FROM client_app_authorized_group z JOIN application_group_identity i \
        ON i.application_group_rid = z.application_group_rid AND i.lifecycle_status = 'Active' \
        WHERE z.client_app_rid = ?1 AND i.idp_instance_id = ?2";
    let mut authorized = HashSet::new();
    tx.query(text, &[application.rid.into(), instance.into()], |row| {
        authorized.extend(Uuid::try_parse(row.text(0)?));
        Ok(())
    })?;
    if authorized.is_empty() {
        return Ok(false);
    }
    let text = format!(
        "{ALL_GROUPS} SELECT g.id FROM user_group g JOIN all_groups a ON a.rid = g.rid LIMIT {MAX_GROUPS}"
    );
    let mut is_in = false;
    tx.query(&text, &[user.user.into()], |row| {
        is_in |= authorized.contains(&row.id(0)?);
        Ok(())
    })?;
    Ok(is_in)
}

/// The statement that selects the names of the groups of a store's user at any depth, [`MAX_GROUPS`] at most.
pub fn group_names() -> String {
    format!(
        "{ALL_GROUPS} SELECT g.name FROM user_group g JOIN all_groups a ON a.rid = g.rid LIMIT {MAX_GROUPS}"
    )
}

/// The groups of an external user, as provisioned by a directory, [`MAX_GROUPS`] at most.
pub fn provisioned_group_names() -> String {
    format!(
        "SELECT g.name FROM application_group_member m JOIN application_group g ON g.rid = m.application_group_rid \
         WHERE m.application_user_rid = ?1 LIMIT {MAX_GROUPS}"
    )
}

/// A person with an active identity, for whom admission to the client app is not checked; `None` if the person can no
/// longer sign in by this instance.
pub fn user_of(
    tx: &mut Tx<'_>,
    application: &Application,
    identity: IdentityKey,
    now: Timestamp,
) -> Result<Option<Admitted>, StoreError> {
    let Some(identity) = find_identity(tx, application, identity)? else { return Ok(None) };
    identity.admitted(tx, now)
}
