//! A person as a caller: whether the grant of the person's token is still valid, and the roles that were assigned to the
//! person, or to groups that the person is in: those of user stores at any depth, and those that a directory provisions.

use std::sync::LazyLock;

use chancery_record::{Timestamp, Value};
use chancery_resource::{HeldRole, RoleScope, RoleType, ScopeKind, Sql};
use chancery_store::{Error, Row, Tx, selectable};
use uuid::Uuid;

use crate::{Caller, Claims, client::serves};

/// The most groups whose roles are read.
const MAX_GROUPS: usize = 10_000;

/// The SQL condition that an instance is active, and linked to the client app `a` and the tenant `t`. With `proven_on`, the column
/// with the time of the last first factor, that factor must also be later than the last confirmed review of the instance: the actor
/// who configured the provider may have signed in before.
fn has_instance(instance: &str, proven_on: Option<&str>) -> String {
    let is_after_review = proven_on.map_or_else(String::new, |proven_on| {
        format!(" AND (i.settings_confirmed_on IS NULL OR {proven_on} > i.settings_confirmed_on)")
    });
    format!(
        "EXISTS (SELECT 1 FROM idp_instance i JOIN idp_instance_client_app m ON m.idp_instance_rid = i.rid \
         JOIN tenant_idp_instance n ON n.idp_instance_rid = i.rid WHERE i.id = {instance} AND i.is_active \
         AND m.client_app_rid = a.rid AND n.tenant_rid = t.rid{is_after_review})"
    )
}

/// A statement with its parameters.
pub type Statement = (String, Vec<Value>);

/// The statement for the grant of a person's token; `None`: the token has none.
pub fn grant_statement(claims: &Claims) -> Option<Statement> {
    let grant = claims.gid?;
    // an exchanged token is another client app's than the grant: both have to be enabled
    let is_enabled = format!(
        "a.enabled AND a.allow_user_login AND h.enabled AND t.is_active AND y.status = 'Active' AND {} AND {}",
        serves("a", Some("g.tenant_id")),
        has_instance("g.idp_instance_id", claims.has_rights().then_some("g.proven_on"))
    );
    let text = format!(
        "SELECT {} FROM sign_in_grant g JOIN client_app a ON a.id = g.client_app_id JOIN client_app h ON h.id = ?3 \
         JOIN tenant t ON t.id = g.tenant_id JOIN subscription y ON y.id = t.subscription_id \
         LEFT JOIN client_app_authentication_configuration c ON c.client_app_id = h.id \
         WHERE g.id = ?1 AND g.person_id = ?2 AND g.ended_on IS NULL",
        SignIn::columns(&is_enabled, "c.require_dpop_nonce", "h.subscription_id", "g.idp_instance_id")
    );
    Some((text, vec![Value::Id(grant), Value::Id(claims.sub), Value::Id(claims.client_id)]))
}

/// The statement for a session at the console.
fn session_statement(person: Uuid, session: Uuid, console: Uuid) -> Statement {
    let is_enabled = format!(
        "a.enabled AND a.allow_user_login AND t.is_active AND y.status = 'Active' AND {} AND {}",
        serves("a", Some("s.tenant_id")),
        has_instance("s.idp_instance_id", Some("s.proven_on"))
    );
    let text = format!(
        "SELECT {} FROM sign_in_session s JOIN client_app a ON a.id = ?3 JOIN tenant t ON t.id = s.tenant_id \
         JOIN subscription y ON y.id = t.subscription_id \
         WHERE s.id = ?1 AND s.person_id = ?2 AND s.ended_on IS NULL",
        SignIn::columns(&is_enabled, "FALSE", "a.subscription_id", "s.idp_instance_id")
    );
    (text, vec![Value::Id(session), Value::Id(person), Value::Id(console)])
}

/// The statements for a person's sign-in, identities and, with rights, roles. They do not depend on each other:
/// [`PersonRows::read`] takes their rows.
pub fn person_statements(sign_in: Statement, person: Uuid, has_rights: bool) -> Vec<Statement> {
    let mut statements = vec![sign_in, (IdentityRow::SELECT.to_owned(), vec![Value::Id(person)])];
    if has_rights {
        // groups that a directory provisions are not nested
        let roles = format!(
            "SELECT {columns} FROM role_assignment r WHERE r.principal_id = ?1 AND r.principal_type = 'PlatformUser' \
             UNION ALL SELECT {columns} FROM application_user u \
             JOIN application_group_member m ON m.application_user_rid = u.rid \
             JOIN application_group p ON p.rid = m.application_group_rid \
             JOIN role_assignment r ON r.principal_id = p.id AND r.principal_type = 'PlatformGroup' \
             WHERE u.id = ?1 AND u.is_active",
            columns = AssignedRole::COLUMNS
        );
        statements.push((roles, vec![Value::Id(person)]));
    }
    statements
}

selectable! {
    /// The sign-in behind a grant or session.
    struct SignIn(is_enabled, needs_nonce, holder_subscription, instance) {
        is_enabled: bool = "{is_enabled}",
        needs_nonce: Option<bool> = "{needs_nonce}",
        holder_subscription: Uuid = "{holder_subscription}",
        /// The identity provider instance through which the person signed in.
        instance: Uuid = "{instance}",
    }
}

selectable! {
    /// An active identity of a person, as it is stored.
    struct IdentityRow<'r> from "FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.lifecycle_status = 'Active' \
        WHERE u.id = ?1 AND u.hidden_on IS NULL ORDER BY i.rid" {
        instance: Uuid = "i.idp_instance_id",
        subject: &'r str = "i.subject",
        is_of_store: bool = "i.is_user_store_identity",
        is_active: bool = "u.is_active",
        login_name: &'r str = "COALESCE(u.user_name, u.email_address, i.subject)",
    }
}

/// An active identity of a person.
enum Identity {
    /// A user of a user store.
    User(Uuid),
    /// A subject at an external identity provider: whether the platform user is active, and the login name.
    External(bool, String),
}

impl IdentityRow<'_> {
    /// The identity; `None` if the subject is no user's id.
    fn identity(&self) -> Option<Identity> {
        if self.is_of_store {
            // the subject of a user of a store is the user's id
            Uuid::try_parse(self.subject).ok().map(Identity::User)
        } else {
            Some(Identity::External(self.is_active, self.login_name.to_owned()))
        }
    }
}

/// A user of a user store.
#[derive(Clone, Copy)]
struct StoreUser {
    /// The user store.
    store: Uuid,
    /// The user there.
    user: Uuid,
}

/// The rows of a person: sign-in, identities and roles.
#[derive(Default)]
pub struct PersonRows {
    sign_in: Option<SignIn>,
    /// By the instance, the oldest first.
    identities: Vec<(Uuid, Identity)>,
    roles: Vec<HeldRole>,
}

impl PersonRows {
    /// Takes a row of the statement at this index of [`person_statements`].
    pub fn read(&mut self, index: usize, row: &Row<'_>) -> Result<(), Error> {
        match index {
            0 => self.sign_in = Some(SignIn::read(row)?),
            1 => {
                let row = IdentityRow::read(row)?;
                self.identities.extend(row.identity().map(|identity| (row.instance, identity)));
            }
            _ => self.roles.push(AssignedRole::read(row)?.held()?),
        }
        Ok(())
    }

    /// The person as a caller; `None` if the grant or session has ended, or the person may not sign in now. With `has_rights` the
    /// person has the roles of all identities, by whichever the person signed in.
    ///
    /// Restrictions of the client app to some people are not checked here: they apply when a token is issued.
    pub fn caller(
        self,
        tx: &mut Tx<'_>,
        person: Uuid,
        holder: Uuid,
        has_rights: bool,
        now: Timestamp,
    ) -> Result<Option<Caller>, Error> {
        let Some(sign_in) = self.sign_in else { return Ok(None) };
        let own = self.identities.iter().find(|(instance, _)| *instance == sign_in.instance);
        let Some((instance, own)) = own else { return Ok(None) };
        let users = self.identities.iter().filter_map(|(instance, identity)| match identity {
            Identity::User(user) if has_rights => Some(StoreUser { store: *instance, user: *user }),
            _ => None,
        });
        let users: Vec<StoreUser> = users.collect();
        let own_user = match own {
            Identity::External(false, _) => return Ok(None),
            Identity::External(true, _) => None,
            Identity::User(user) => Some(StoreUser { store: *instance, user: *user }),
        };
        let (own_name, groups) = read_users(tx, own_user, &users, now)?;
        let login_name = match own {
            Identity::External(_, login_name) => Some(login_name.clone()),
            Identity::User(_) => own_name,
        };
        let Some(login_name) = login_name else { return Ok(None) };
        let mut roles = self.roles;
        for (user, groups) in users.iter().zip(&groups) {
            read_roles_of_groups(tx, user.store, groups, &mut roles)?;
        }
        Ok(Some(Caller {
            id: person,
            holder,
            is_person: true,
            enabled: sign_in.is_enabled,
            needs_nonce: sign_in.needs_nonce == Some(true),
            subscription: sign_in.holder_subscription,
            login_name: Some(login_name),
            roles,
        }))
    }
}

/// The caller of a console session; `None`: the person may not sign in now, or nobody may sign in to the console there.
pub fn session_caller(
    tx: &mut Tx<'_>,
    person: Uuid,
    session: Uuid,
    console: Uuid,
    now: Timestamp,
) -> Result<Option<Caller>, Error> {
    let statements = person_statements(session_statement(person, session, console), person, true);
    let statements: Vec<(&str, &[Value])> =
        statements.iter().map(|(text, parameters)| (text.as_str(), parameters.as_slice())).collect();
    let mut rows = PersonRows::default();
    tx.query_all(&statements, &mut |index, row| rows.read(index, row))?;
    rows.caller(tx, person, console, true, now)
}

selectable! {
    /// A role assignment.
    struct AssignedRole<'r> {
        role: &'r str = "r.role_type",
        customer: Option<Uuid> = "r.apply_to_customer_id",
        subscription: Option<Uuid> = "r.apply_to_subscription_id",
        tenant: Option<Uuid> = "r.apply_to_tenant_id",
        instance: Option<Uuid> = "r.apply_to_idp_instance_id",
    }
}

impl AssignedRole<'_> {
    fn held(&self) -> Result<HeldRole, Error> {
        let unknown = || Error::Internal("a person has a role of no known type, or given at nothing".into());
        let role = RoleType::of(self.role).ok_or_else(unknown)?;
        let scope: Option<RoleScope> = role.scope(|kind| match kind {
            ScopeKind::Customer => self.customer,
            ScopeKind::Subscription => self.subscription,
            ScopeKind::Tenant => self.tenant,
            ScopeKind::IdpInstance | ScopeKind::UserStore => self.instance,
            ScopeKind::System | ScopeKind::Nothing => None,
        });
        Ok(HeldRole { role, scope: scope.ok_or_else(unknown)? })
    }
}

/// The SQL condition that a user `s` of a store `o` may sign in now, `?3`.
macro_rules! may_sign_in {
    () => {
        "o.is_active AND s.quarantined_on IS NULL AND s.is_user_active AND NOT (s.is_user_lock_enabled AND s.is_user_locked) \
         AND (s.user_valid_from IS NULL OR s.user_valid_from <= ?3) AND (s.user_valid_to IS NULL OR s.user_valid_to > ?3)"
    };
}

/// The statement for the login name of a user who may sign in now.
const USER: &str = concat!(
    "SELECT s.login_name FROM idp_instance o JOIN user_account s ON s.store = o.rid AND s.id = ?2 \
     WHERE o.id = ?1 AND ",
    may_sign_in!()
);

/// The groups that a user of a store is in, at any depth; none while the user may not sign in.
static GROUPS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH RECURSIVE above (rid) AS (SELECT m.group_rid FROM idp_instance o \
         JOIN user_account s ON s.store = o.rid AND s.id = ?2 JOIN group_member m ON m.user_rid = s.rid \
         WHERE o.id = ?1 AND {} UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid) \
         SELECT g.id FROM user_group g JOIN above a ON a.rid = g.rid LIMIT {MAX_GROUPS}",
        may_sign_in!()
    )
});

/// Whether a user of a store may sign in now.
pub fn may_sign_in(tx: &mut Tx<'_>, store: Uuid, user: Uuid, now: Timestamp) -> Result<bool, Error> {
    Ok(read_users(tx, Some(StoreUser { store, user }), &[], now)?.0.is_some())
}

/// The login name of a user of a store, if that user may sign in now, and the groups that each of the other users is in, at any
/// depth, in their order.
fn read_users(
    tx: &mut Tx<'_>,
    own: Option<StoreUser>,
    users: &[StoreUser],
    now: Timestamp,
) -> Result<(Option<String>, Vec<Vec<Uuid>>), Error> {
    let key = |user: StoreUser| [Value::Id(user.store), Value::Id(user.user), Value::Int(now.0)];
    let own = own.map(key);
    let keys: Vec<[Value; 3]> = users.iter().copied().map(key).collect();
    let mut statements: Vec<(&str, &[Value])> = keys.iter().map(|key| (GROUPS.as_str(), &key[..])).collect();
    statements.extend(own.iter().map(|key| (USER, &key[..])));
    let (mut login_name, mut groups) = (None, vec![Vec::new(); users.len()]);
    if !statements.is_empty() {
        tx.query_all(&statements, &mut |index, row| {
            match groups.get_mut(index) {
                None => login_name = Some(row.text(0)?.to_owned()),
                Some(groups) => groups.push(row.id(0)?),
            }
            Ok(())
        })?;
    }
    Ok((login_name, groups))
}

fn read_roles_of_groups(
    tx: &mut Tx<'_>,
    instance: Uuid,
    groups: &[Uuid],
    roles: &mut Vec<HeldRole>,
) -> Result<(), Error> {
    for chunk in groups.chunks(chancery_resource::LIST) {
        let mut sql = Sql::new(format!(
            "SELECT {} FROM application_group_identity i \
             JOIN application_group p ON p.rid = i.application_group_rid \
             JOIN role_assignment r ON r.principal_id = p.id AND r.principal_type = 'PlatformGroup' \
             WHERE i.lifecycle_status = 'Active' AND i.idp_instance_id = ",
            AssignedRole::COLUMNS
        ))
        .bind(instance);
        sql.add(" AND i.subject IN ");
        sql.add_list(chunk.iter().map(|id| Value::Text(id.to_string())));
        tx.query(&sql.text, &sql.parameters, |row| {
            roles.push(AssignedRole::read(row)?.held()?);
            Ok(())
        })?;
    }
    Ok(())
}
