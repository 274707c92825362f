//! A person as a caller: whether the grant of the person's token is still valid, and the roles that were assigned to the
//! person, or to groups that the person is in at any depth.

use chancery_record::{Timestamp, Value};
use chancery_resource::{HeldRole, RoleScope, RoleType, ScopeKind, Sql};
use chancery_store::{Error, Row, Tx};
use uuid::Uuid;

use crate::{Caller, Claims, client::serves};

/// The most groups whose roles are read.
const MAX_GROUPS: usize = 10_000;

/// The SQL condition that an instance is one of the client app's `a` and of the tenant's `t`.
fn has_instance(instance: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM idp_instance i JOIN idp_instance_client_app m ON m.idp_instance_rid = i.rid \
         JOIN tenant_idp_instance n ON n.idp_instance_rid = i.rid WHERE i.id = {instance} \
         AND m.client_app_rid = a.rid AND n.tenant_rid = t.rid)"
    )
}

/// The sign-in behind a grant or session, and the person's identities and roles.
struct SignIn {
    enabled: bool,
    needs_nonce: bool,
    holder_subscription: Uuid,
    /// The instance by which the person signed in.
    instance: Uuid,
    /// Instances, each with the person's subject there.
    identities: Vec<(Uuid, Uuid)>,
    roles: Vec<HeldRole>,
}

/// The caller of a person's token; `None`: its grant has ended, or the person may not sign in now.
///
/// Restrictions of the client app to some people are not checked here: they apply when a token is issued.
pub fn look_up(tx: &mut Tx<'_>, claims: &Claims, now: Timestamp) -> Result<Option<Caller>, Error> {
    let Some(grant) = claims.gid else { return Ok(None) };
    // an exchanged token is another client app's than the grant: both have to be enabled
    let about = format!(
        "SELECT a.enabled AND a.allow_user_login AND h.enabled AND t.is_active AND y.status = 'Active' AND {} AND {}, \
         c.require_dpop_nonce, h.subscription_id, g.idp_instance_id \
         FROM sign_in_grant g JOIN client_app a ON a.id = g.client_app_id JOIN client_app h ON h.id = ?3 \
         JOIN tenant t ON t.id = g.tenant_id JOIN subscription y ON y.id = t.subscription_id \
         LEFT JOIN client_app_authentication_configuration c ON c.client_app_id = h.id \
         WHERE g.id = ?1 AND g.person_id = ?2 AND g.ended_on IS NULL",
        serves("a", Some("g.tenant_id")),
        has_instance("g.idp_instance_id")
    );
    let key = [Value::Id(grant), Value::Id(claims.sub), Value::Id(claims.client_id)];
    caller_of(tx, (&about, &key), (claims.sub, claims.client_id), claims.has_rights(), now)
}

/// The caller of a console session; `None`: the person may not sign in now, or nobody may sign in to the console there.
pub fn in_session(
    tx: &mut Tx<'_>,
    (person, session): (Uuid, Uuid),
    console: Uuid,
    now: Timestamp,
) -> Result<Option<Caller>, Error> {
    let about = format!(
        "SELECT a.enabled AND a.allow_user_login AND t.is_active AND y.status = 'Active' AND {} AND {}, \
         FALSE, a.subscription_id, s.idp_instance_id \
         FROM sign_in_session s JOIN client_app a ON a.id = ?3 JOIN tenant t ON t.id = s.tenant_id \
         JOIN subscription y ON y.id = t.subscription_id \
         WHERE s.id = ?1 AND s.person_id = ?2 AND s.ended_on IS NULL",
        serves("a", Some("s.tenant_id")),
        has_instance("s.idp_instance_id")
    );
    let key = [Value::Id(session), Value::Id(person), Value::Id(console)];
    caller_of(tx, (&about, &key), (person, console), true, now)
}

/// The caller, by the statement for the person's sign-in.
fn caller_of(
    tx: &mut Tx<'_>,
    about: (&str, &[Value]),
    (person, holder): (Uuid, Uuid),
    has_rights: bool,
    now: Timestamp,
) -> Result<Option<Caller>, Error> {
    let Some(mut sign_in) = read_sign_in(tx, about, person, has_rights)? else { return Ok(None) };
    let own = sign_in.identities.iter().find(|(instance, _)| *instance == sign_in.instance);
    let Some((instance, subject)) = own.copied() else { return Ok(None) };
    if !may_sign_in(tx, (instance, subject), now)? {
        return Ok(None);
    }
    if has_rights {
        for (instance, subject) in &sign_in.identities {
            let groups = groups_of(tx, *instance, *subject)?;
            read_roles_of_groups(tx, *instance, &groups, &mut sign_in.roles)?;
        }
    }
    Ok(Some(Caller {
        id: person,
        holder,
        is_person: true,
        enabled: sign_in.enabled,
        needs_nonce: sign_in.needs_nonce,
        subscription: sign_in.holder_subscription,
        roles: sign_in.roles,
    }))
}

/// The columns of a role assignment.
const ROLE: &str = "r.role_type, r.apply_to_customer_id, r.apply_to_subscription_id, r.apply_to_tenant_id, \
    r.apply_to_idp_instance_id";

fn read_sign_in(
    tx: &mut Tx<'_>,
    (about, key): (&str, &[Value]),
    person: Uuid,
    has_rights: bool,
) -> Result<Option<SignIn>, Error> {
    let identities = "SELECT i.idp_instance_id, i.subject FROM application_user u \
        JOIN application_identity i ON i.application_user_rid = u.rid AND i.lifecycle_status = 'Active' \
        WHERE u.id = ?1 AND u.hidden_on IS NULL AND i.is_user_store_identity ORDER BY i.rid";
    let roles = format!(
        "SELECT {ROLE} FROM role_assignment r WHERE r.principal_id = ?1 AND r.principal_type = 'PlatformUser'"
    );
    let person = [Value::Id(person)];
    let statements = [(about, key), (identities, &person[..]), (roles.as_str(), &person[..])];
    let statements = if has_rights { &statements[..] } else { &statements[..2] };
    let (mut sign_in, mut identities_found, mut roles_held) = (None, Vec::new(), Vec::new());
    tx.query_all(statements, &mut |index, row| {
        match index {
            0 => {
                sign_in = Some(SignIn {
                    enabled: row.bool(0)?,
                    needs_nonce: !row.is_null(1)? && row.bool(1)?,
                    holder_subscription: row.id(2)?,
                    instance: row.id(3)?,
                    identities: Vec::new(),
                    roles: Vec::new(),
                });
            }
            1 => identities_found.extend(
                Uuid::try_parse(row.text(1)?)
                    .ok()
                    .map(|subject| Ok::<_, Error>((row.id(0)?, subject)))
                    .transpose()?,
            ),
            _ => roles_held.push(read_role(row)?),
        }
        Ok(())
    })?;
    Ok(sign_in.map(|sign_in| SignIn { identities: identities_found, roles: roles_held, ..sign_in }))
}

fn read_role(row: &Row<'_>) -> Result<HeldRole, Error> {
    let unknown = || Error::Internal("a person has a role of no known type, or given at nothing".into());
    let role = RoleType::of(row.text(0)?).ok_or_else(unknown)?;
    let targets = [row.optional_id(1)?, row.optional_id(2)?, row.optional_id(3)?, row.optional_id(4)?];
    let [customer, subscription, tenant, instance] = targets;
    let scope: Option<RoleScope> = role.scope(|kind| match kind {
        ScopeKind::Customer => customer,
        ScopeKind::Subscription => subscription,
        ScopeKind::Tenant => tenant,
        ScopeKind::IdpInstance | ScopeKind::UserStore => instance,
        ScopeKind::System | ScopeKind::Nothing => None,
    });
    Ok(HeldRole { role, scope: scope.ok_or_else(unknown)? })
}

/// Whether a user of a store may sign in now.
pub fn may_sign_in(
    tx: &mut Tx<'_>,
    (instance, subject): (Uuid, Uuid),
    now: Timestamp,
) -> Result<bool, Error> {
    let text = "SELECT 1 FROM idp_instance o JOIN user_account s ON s.store = o.rid AND s.id = ?2 \
        WHERE o.id = ?1 AND o.is_active AND s.quarantined_on IS NULL AND s.is_user_active \
        AND NOT (s.is_user_lock_enabled AND s.is_user_locked) AND (s.user_valid_from IS NULL OR s.user_valid_from <= ?3) \
        AND (s.user_valid_to IS NULL OR s.user_valid_to > ?3)";
    Ok(tx.one(text, &[instance.into(), subject.into(), now.0.into()], |_| Ok(()))?.is_some())
}

/// The groups of a store that one of its users is in, at any depth.
fn groups_of(tx: &mut Tx<'_>, instance: Uuid, user: Uuid) -> Result<Vec<Uuid>, Error> {
    let text = format!(
        "WITH RECURSIVE above (rid) AS (SELECT m.group_rid FROM idp_instance o \
         JOIN user_account s ON s.store = o.rid AND s.id = ?2 JOIN group_member m ON m.user_rid = s.rid \
         WHERE o.id = ?1 UNION SELECT e.parent_rid FROM group_edge e JOIN above a ON a.rid = e.child_rid) \
         SELECT g.id FROM user_group g JOIN above a ON a.rid = g.rid LIMIT {MAX_GROUPS}"
    );
    let mut groups = Vec::new();
    tx.query(&text, &[instance.into(), user.into()], |row| {
        groups.push(row.id(0)?);
        Ok(())
    })?;
    Ok(groups)
}

fn read_roles_of_groups(
    tx: &mut Tx<'_>,
    instance: Uuid,
    groups: &[Uuid],
    roles: &mut Vec<HeldRole>,
) -> Result<(), Error> {
    for chunk in groups.chunks(chancery_resource::LIST) {
        let mut sql = Sql::new(format!(
            "SELECT {ROLE} FROM application_group_identity i \
             JOIN application_group p ON p.rid = i.application_group_rid \
             JOIN role_assignment r ON r.principal_id = p.id AND r.principal_type = 'PlatformGroup' \
             WHERE i.lifecycle_status = 'Active' AND i.idp_instance_id = "
        ))
        .bind(instance);
        sql.add(" AND i.subject IN ");
        sql.add_list(chunk.iter().map(|id| Value::Text(id.to_string())));
        tx.query(&sql.text, &sql.parameters, |row| {
            roles.push(read_role(row)?);
            Ok(())
        })?;
    }
    Ok(())
}
