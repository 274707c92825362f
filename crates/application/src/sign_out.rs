//! Sign-out: ends sessions and the grants of client apps, and queues back-channel logout
//! notifications.

use chancery_record::Timestamp;
use chancery_resource::{
    Context, Problem, Row, SignInEvent, Sql, StateTable, StoreError, Tx, event_type, selectable,
};
use uuid::Uuid;

/// The scope of a sign-out. An offline grant outlasts its session, and nothing else.
#[derive(Clone, Copy, Debug)]
pub enum SignOutScope<'a> {
    /// A session.
    Session(Uuid),
    /// All sessions and grants of these platform users, at most `LIST` of them.
    People(&'a [Uuid]),
    /// The same for these users of a user store, at most `LIST` of them.
    StoreUsers {
        /// The user store.
        store: Uuid,
        /// The users' ids there.
        users: &'a [Uuid],
    },
    /// A grant alone.
    Grant(Uuid),
    /// All grants of a person to a client app.
    Access {
        /// The client app.
        client_app: Uuid,
        /// The platform user.
        person: Uuid,
    },
}

impl SignOutScope<'_> {
    /// Adds the condition on a table's rows; `by_id` is the condition on an id, without its value.
    fn add_condition(self, sql: &mut Sql, by_id: &str) {
        match self {
            Self::Session(id) | Self::Grant(id) => {
                sql.add(by_id);
                sql.add_bound(id);
            }
            Self::People(ids) => add_people(sql, "person_id", ids),
            // resolved to people before
            Self::StoreUsers { .. } => sql.add("FALSE"),
            Self::Access { client_app, person } => {
                sql.add("client_app_id = ");
                sql.add_bound(client_app);
                sql.add(" AND person_id = ");
                sql.add_bound(person);
            }
        }
        sql.add(" AND ended_on IS NULL");
    }
}

/// Ends sessions and grants. Client apps with a back channel are notified of each session that ends (OpenID Connect
/// Back-Channel Logout 1.0).
pub fn sign_out(context: &Context, tx: &mut Tx<'_>, scope: SignOutScope<'_>) -> Result<(), Problem> {
    end(context, tx, scope, true)
}

/// The same, for one session or grant: the caller audits its end, which emits the event.
pub fn sign_out_audited(context: &Context, tx: &mut Tx<'_>, scope: SignOutScope<'_>) -> Result<(), Problem> {
    end(context, tx, scope, false)
}

/// Adds the condition on the person in a column.
fn add_people(sql: &mut Sql, column: &str, people: &[Uuid]) {
    sql.add(column);
    sql.add(" IN ");
    sql.add_list(people.iter().map(|person| (*person).into()));
}

/// The platform users of these users of a user store.
fn people_of(tx: &mut Tx<'_>, store: Uuid, users: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    // not as a join, nor within the statements that need it: with tables that look empty to PostgreSQL, as they do while
    // many are imported, it would read all of one table for each row of the other
    let mut sql = Sql::new(
        "SELECT (SELECT u.id FROM application_user u WHERE u.rid = i.application_user_rid) \
         FROM application_identity i WHERE i.idp_instance_id = ",
    );
    sql.add_bound(store);
    sql.add(" AND i.subject IN ");
    sql.add_list(users.iter().map(|user| user.to_string().into()));
    let mut people = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        people.push(row.id(0)?);
        Ok(())
    })?;
    Ok(people)
}

fn end(
    context: &Context,
    tx: &mut Tx<'_>,
    scope: SignOutScope<'_>,
    is_announced: bool,
) -> Result<(), Problem> {
    if let SignOutScope::StoreUsers { store, users } = scope {
        let people = people_of(tx, store, users)?;
        return if people.is_empty() {
            Ok(())
        } else {
            end(context, tx, SignOutScope::People(&people), is_announced)
        };
    }
    let now = context.now;
    let beginning = |text: &str| Sql { text: text.to_owned(), parameters: vec![now.0.into()] };
    if !matches!(scope, SignOutScope::Grant(_) | SignOutScope::Access { .. }) {
        if is_announced {
            let read = |row: &Row<'_>| Ok(EndedSession::read(row)?.into());
            announce(context, tx, EndedSession::SELECT, read, |sql| scope.add_condition(sql, "id = "))?;
        }
        let mut notifications = beginning(LOGOUT_NOTIFICATIONS);
        scope.add_condition(&mut notifications, "id = ");
        notifications.add(
            ") AND NOT EXISTS (SELECT 1 FROM sign_in_grant o WHERE o.session_id = g.session_id \
             AND o.client_app_id = g.client_app_id AND o.rid < g.rid) ON CONFLICT DO NOTHING",
        );
        tx.queue(&StateTable::LogoutDelivery.insert(&notifications.text), notifications.parameters)?;
        let mut ended = beginning("SET ended_on = ?1, provider_claims = NULL WHERE ");
        scope.add_condition(&mut ended, "id = ");
        tx.queue(&StateTable::SignInSession.update(&ended.text), ended.parameters)?;
    }
    if let SignOutScope::People(people) = scope {
        invalidate_proofs(tx, people, now)?;
    }
    let of_session = matches!(scope, SignOutScope::Session(_));
    let grants = if of_session { "is_offline = FALSE AND session_id = " } else { "id = " };
    if is_announced || of_session {
        let read = |row: &Row<'_>| Ok(RevokedGrant::read(row)?.into());
        announce(context, tx, RevokedGrant::SELECT, read, |sql| scope.add_condition(sql, grants))?;
    }
    let mut ended = beginning("SET ended_on = ?1 WHERE ");
    scope.add_condition(&mut ended, grants);
    Ok(tx.queue(&StateTable::SignInGrant.update(&ended.text), ended.parameters)?)
}

selectable! {
    /// A session that ends.
    struct EndedSession from "FROM sign_in_session WHERE " {
        id: Uuid = "id",
        tenant: Uuid = "tenant_id",
        subscription: Option<Uuid> = "(SELECT t.subscription_id FROM tenant t WHERE t.id = tenant_id)",
        instance: Uuid = "idp_instance_id",
        person: Uuid = "person_id",
    }
}

impl From<EndedSession> for SignInEvent {
    fn from(session: EndedSession) -> Self {
        let EndedSession { id, tenant, subscription, instance, person } = session;
        Self {
            kind: event_type!("platform.signin.session.ended"),
            id,
            subscription,
            tenant,
            instance: Some(instance),
            person,
            client_app: None,
            session: Some(id),
        }
    }
}

selectable! {
    /// A grant that ends.
    struct RevokedGrant from "FROM sign_in_grant WHERE " {
        id: Uuid = "id",
        tenant: Uuid = "tenant_id",
        subscription: Option<Uuid> = "(SELECT t.subscription_id FROM tenant t WHERE t.id = tenant_id)",
        instance: Uuid = "idp_instance_id",
        person: Uuid = "person_id",
        client_app: Uuid = "client_app_id",
        session: Option<Uuid> = "session_id",
    }
}

impl From<RevokedGrant> for SignInEvent {
    fn from(grant: RevokedGrant) -> Self {
        let RevokedGrant { id, tenant, subscription, instance, person, client_app, session } = grant;
        Self {
            kind: event_type!("platform.signin.grant.revoked"),
            id,
            subscription,
            tenant,
            instance: Some(instance),
            person,
            client_app: Some(client_app),
            session,
        }
    }
}

/// Emits an event for each session or grant that ends. `query` begins the statement for them, and `read` reads its rows.
fn announce(
    context: &Context,
    tx: &mut Tx<'_>,
    query: &str,
    read: impl Fn(&Row<'_>) -> Result<SignInEvent, StoreError>,
    add_condition: impl Fn(&mut Sql),
) -> Result<(), Problem> {
    let mut sql = Sql::new(query);
    add_condition(&mut sql);
    let mut ending = Vec::new();
    tx.query(&sql.text, &sql.parameters, |row| {
        ending.push(read(row)?);
        Ok(())
    })?;
    ending.into_iter().try_for_each(|event| event.announce(context, tx))
}

/// Ends the sessions of a person in which a removed credential was used, a passkey or a second factor; and invalidates the
/// proofs of running sign-ins and of remembered browsers.
pub fn sign_out_by(
    context: &Context,
    tx: &mut Tx<'_>,
    person: Uuid,
    credential: Uuid,
) -> Result<(), Problem> {
    let text = "SELECT id FROM sign_in_session WHERE person_id = ?1 AND ended_on IS NULL \
        AND proofs LIKE '%' || ?2 || '%'";
    let mut sessions = Vec::new();
    tx.query(text, &[person.into(), credential.to_string().into()], |row| {
        sessions.push(row.id(0)?);
        Ok(())
    })?;
    invalidate_proofs(tx, &[person], context.now)?;
    sessions.into_iter().try_for_each(|session| sign_out(context, tx, SignOutScope::Session(session)))
}

/// Invalidates the proofs of these people in running sign-ins and of remembered browsers.
fn invalidate_proofs(tx: &mut Tx<'_>, people: &[Uuid], now: Timestamp) -> Result<(), StoreError> {
    let mut forgotten = Sql::new("WHERE ");
    add_people(&mut forgotten, "person_id", people);
    tx.queue(&StateTable::RememberedDevice.delete(&forgotten.text), forgotten.parameters)?;
    let until = now.plus(MAX_SIGN_IN_MS);
    let mut cutoff = Sql { text: CUTOFF.to_owned(), parameters: vec![now.0.into(), until.0.into()] };
    add_people(&mut cutoff, "id", people);
    cutoff.add(" ON CONFLICT (person_id) DO UPDATE SET proven_until = ?1, expires_on = ?2");
    tx.queue(&StateTable::SignInCutoff.insert(&cutoff.text), cutoff.parameters)
}

/// The same, for this user of a user store.
pub fn sign_out_user_by(
    context: &Context,
    tx: &mut Tx<'_>,
    store: Uuid,
    user: Uuid,
    credential: Uuid,
) -> Result<(), Problem> {
    let people = people_of(tx, store, &[user])?;
    people.into_iter().try_for_each(|person| sign_out_by(context, tx, person, credential))
}

/// The maximum duration of a sign-in, in ms: an hour, of which half is for clock skew.
const MAX_SIGN_IN_MS: i64 = 3_600_000;
/// The cutoff before which proofs of running sign-ins do not count.
const CUTOFF: &str = "(person_id, proven_until, expires_on) SELECT id, ?1, ?2 FROM application_user WHERE ";

/// A client app is notified once of a session, regardless of its grants.
const LOGOUT_NOTIFICATIONS: &str = "(id, client_app_id, issuing_tenant_id, person_id, session_id, queued_on, due_on, \
    leased_until, tries) SELECT g.id, g.client_app_id, g.issuing_tenant_id, g.person_id, g.session_id, ?1, ?1, 0, 0 \
    FROM sign_in_grant g JOIN client_app a ON a.id = g.client_app_id AND a.backchannel_logout_uri IS NOT NULL \
    WHERE g.session_id IN (SELECT id FROM sign_in_session WHERE ";
