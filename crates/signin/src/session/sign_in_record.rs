//! Sign-in records: the results of attempts by known persons. Attempts with unknown names write no rows. Failed
//! attempts of a person from one address are one record an hour with a counter.

use std::iter;

use chancery_flow::NotAdmitted;
use chancery_management::sign_in::record::associated_data;
use chancery_record::{Timestamp, Value};
use chancery_resource::settings::{Options, Setting, Span, TenantOption};
use chancery_resource::{Context, PersonKey, Problem, SignInEvent, StateTable, Tx, event_type, selectable};
use chancery_userstore::password::write_for_unknown_user;
use uuid::Uuid;

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignInOutcome {
    /// The person is signed in.
    SignedIn,
    /// The person, already signed in, proved a further factor.
    SteppedUp,
    /// The person is not admitted.
    Refused(NotAdmitted),
    /// The first factor was wrong.
    WrongCredentials,
    /// A second factor was not proven.
    WrongFactor,
    /// The person signed out.
    SignedOut,
    /// A replaced refresh token was presented again.
    Reused,
    /// The claim rules in force cannot run, so no tokens are issued.
    RulesUnusable,
}

impl SignInOutcome {
    const fn name(self) -> &'static str {
        match self {
            Self::SignedIn => "SignedIn",
            Self::SteppedUp => "SteppedUp",
            Self::Refused(_) | Self::WrongCredentials | Self::WrongFactor | Self::RulesUnusable => "Refused",
            Self::SignedOut => "SignedOut",
            Self::Reused => "Reused",
        }
    }

    fn is_failure(self) -> bool {
        self.name() == "Refused"
    }

    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Refused(NotAdmitted::Account | NotAdmitted::PasswordExpired) => Some("Locked"),
            Self::Refused(NotAdmitted::SecondFactorUnavailable) => Some("SecondFactorUnavailable"),
            Self::Refused(_) => Some("NotAdmitted"),
            Self::WrongCredentials => Some("Credentials"),
            Self::WrongFactor => Some("SecondFactor"),
            Self::RulesUnusable => Some("ClaimRules"),
            Self::SignedIn | Self::SteppedUp | Self::SignedOut | Self::Reused => None,
        }
    }
}

/// The origin of a browser's request.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The address.
    pub address: String,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
}

/// A record of a sign-in.
pub struct SignInRecord<'a> {
    /// The result.
    pub outcome: SignInOutcome,
    /// The tenant.
    pub tenant: Uuid,
    /// The client app.
    pub application: Option<Uuid>,
    /// The instance of the first factor.
    pub instance: Option<Uuid>,
    /// The platform user.
    pub person: Uuid,
    /// The authentication methods, as in `amr`.
    pub methods: &'a [&'static str],
    /// The reached authentication class.
    pub acr: Option<&'static str>,
    /// The session.
    pub session: Option<Uuid>,
    /// The origin, if it is a browser.
    pub origin: Option<&'a Origin>,
}

/// The maximum length of a stored `User-Agent`, in bytes.
const USER_AGENT: usize = 512;

impl SignInRecord<'_> {
    /// Writes the record, or increments the counter of the hour's record of failed attempts. Address and browser are
    /// encrypted with the person's key, so that they are erased with it. A failed attempt emits an event.
    pub fn write(mut self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let counted = self.outcome.is_failure().then(|| Counted::of(&self, context));
        let about = about(context, tx, &self, counted.as_ref())?;
        let is_overflow = about.record.is_none() && about.recent >= MAX_RECENT;
        if is_overflow {
            // too many addresses: further ones share one record without an address
            self.origin = None;
        }
        let existing = if is_overflow { about.overflow } else { about.record };
        let id = existing.unwrap_or_else(|| context.new_id());
        let text = StateTable::SignInRecord.insert(
            "(id, occurred_on, tenant_id, client_app_id, idp_instance_id, person_id, outcome, reason, methods, \
             acr, session_id, address, user_agent, expires_on, last_attempt_on) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?2) \
             ON CONFLICT (id) DO UPDATE SET attempts = sign_in_record.attempts + 1, last_attempt_on = excluded.last_attempt_on, \
             client_app_id = excluded.client_app_id, idp_instance_id = excluded.idp_instance_id, methods = excluded.methods",
        );
        tx.queue(&text, self.row(context, id, &about))?;
        let Some(counted) = counted else { return Ok(()) };
        let digest = if is_overflow { counted.overflow } else { counted.digest };
        let text = StateTable::SignInAttempt.insert(
            "(digest, record_id, expires_on) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO UPDATE \
             SET record_id = excluded.record_id, expires_on = CASE \
             WHEN sign_in_attempt.record_id = excluded.record_id THEN sign_in_attempt.expires_on \
             ELSE excluded.expires_on END",
        );
        tx.queue(&text, vec![digest.into(), id.into(), context.now.plus(HOUR).0.into()])?;
        let failed = SignInEvent {
            kind: event_type!("platform.signin.attempt.failed"),
            id,
            subscription: about.subscription,
            tenant: self.tenant,
            instance: self.instance,
            person: self.person,
            client_app: self.application,
            session: self.session,
        };
        failed.announce(context, tx)
    }

    fn row(&self, context: &Context, id: Uuid, about: &RecordContext) -> Vec<Value> {
        let seal = |column: &str, text: &str| {
            about.key.as_ref().map(|key| key.seal_text(&associated_data(column, id), text))
        };
        let address = self.origin.and_then(|origin| seal("address", &origin.address));
        let agent = self.origin.and_then(|origin| origin.user_agent.as_deref()).map(|agent| {
            let end = agent.floor_char_boundary(USER_AGENT);
            agent.get(..end).unwrap_or_default()
        });
        let agent = agent.and_then(|agent| seal("user_agent", agent));
        let optional = |id: Option<Uuid>| id.map_or(Value::Null, Value::Id);
        vec![
            id.into(),
            context.now.0.into(),
            self.tenant.into(),
            optional(self.application),
            optional(self.instance),
            self.person.into(),
            self.outcome.name().into(),
            self.outcome.reason().into(),
            self.methods.join(" ").into(),
            self.acr.into(),
            optional(self.session),
            address.into(),
            agent.into(),
            context.now.plus(about.retention).0.into(),
        ]
    }

    /// Does the work of a failed attempt's record without leaving one, because the person does not exist: the same
    /// number of writes and the same encryption.
    pub fn write_dummy(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let (master, id) = (&context.app.master, context.new_id());
        let empty = about(context, tx, &self, Some(&Counted::of(&self, context)))?;
        let sealed_key = PersonKey::generate(master, id);
        let sealed_key = if let Value::Bytes(bytes) = &sealed_key { bytes.as_slice() } else { &[] };
        let about = RecordContext { key: PersonKey::open(master, id, sealed_key), ..empty };
        drop(self.row(context, id, &about));
        write_for_unknown_user(context, tx, WRITES)
    }
}

/// The rows of a failed attempt: the record, its lookup entry, its event, and the event's entry in the queue.
const WRITES: usize = 4;
/// How long one record counts failed attempts, in ms.
const HOUR: i64 = 3_600_000;
/// From this number of a person's records within an hour on, failed attempts from new addresses share one record.
const MAX_RECENT: i64 = 100;

/// The keys under which a failed attempt is counted.
struct Counted {
    /// The digest of the person, the tenant, the reason and the address.
    digest: Vec<u8>,
    /// The same for all addresses beyond the limit.
    overflow: Vec<u8>,
}

impl Counted {
    fn of(record: &SignInRecord<'_>, context: &Context) -> Self {
        let reason = record.outcome.reason().unwrap_or_default();
        // rules belong to a client app: each client app has its own record of rules that cannot run
        let application = record.application.filter(|_| record.outcome == SignInOutcome::RulesUnusable);
        let application = application.as_ref().map_or(&[][..], |id| id.as_bytes().as_slice());
        let digest = |address: &str| {
            let parts = [
                record.person.as_bytes().as_slice(),
                record.tenant.as_bytes(),
                application,
                reason.as_bytes(),
                b"/",
            ];
            context
                .app
                .master
                .digest("sign-in-attempt", &[parts.concat().as_slice(), address.as_bytes()].concat())
        };
        let address = record.origin.map_or("none", |origin| origin.address.as_str());
        Self { digest: digest(address), overflow: digest("others") }
    }

    /// The parameters of [`EarlierAttempts::SELECT`].
    fn parameters(&self, person: Uuid, now: Timestamp) -> Vec<Value> {
        // ids begin with their creation time
        let milliseconds = u64::try_from(now.0 - HOUR).unwrap_or(0);
        let hour_ago = uuid::Builder::from_unix_timestamp_millis(milliseconds, &[0; 10]).into_uuid();
        let (digest, overflow) = (self.digest.clone(), self.overflow.clone());
        vec![digest.into(), overflow.into(), now.0.into(), person.into(), hour_ago.into(), MAX_RECENT.into()]
    }
}

/// The data from which a record is written.
#[derive(Default)]
struct RecordContext {
    /// The key of the platform user, which encrypts the stored personal data.
    key: Option<PersonKey>,
    /// The tenant's subscription.
    subscription: Option<Uuid>,
    /// The retention of the tenant's records (`SignInRecordRetention`), in ms.
    retention: i64,
    /// The record that counts failed attempts from the address.
    record: Option<Uuid>,
    /// The record that counts those beyond the limit.
    overflow: Option<Uuid>,
    /// The number of the person's records of the last hour, up to the limit.
    recent: i64,
}

selectable! {
    /// The person of a record, and the retention at the tenant.
    struct PersonAndTenant<'r> from "FROM application_user u WHERE u.id = ?1" {
        key: &'r [u8] = "u.audit_key",
        retention: Option<String> =
            "(SELECT o.value FROM option_value o WHERE o.apply_to_tenant_id = ?2 AND o.name = ?3)",
        subscription: Option<Uuid> = "(SELECT t.subscription_id FROM tenant t WHERE t.id = ?2)",
    }
}

selectable! {
    /// The records of the last hour that count failed attempts.
    struct EarlierAttempts from "" {
        record: Option<Uuid> = "(SELECT a.record_id FROM sign_in_attempt a WHERE a.digest = ?1 AND a.expires_on > ?3)",
        overflow: Option<Uuid> = "(SELECT a.record_id FROM sign_in_attempt a WHERE a.digest = ?2 AND a.expires_on > ?3)",
        recent: i64 =
            "(SELECT count(*) FROM (SELECT 1 FROM sign_in_record r WHERE r.person_id = ?4 AND r.id > ?5 LIMIT ?6) lately)",
    }
}

fn about(
    context: &Context,
    tx: &mut Tx<'_>,
    record: &SignInRecord<'_>,
    counted: Option<&Counted>,
) -> Result<RecordContext, Problem> {
    let person = record.person;
    let key = [person.into(), record.tenant.into(), RETENTION.name().into()];
    let attempts = counted.map(|counted| counted.parameters(person, context.now));
    let attempts = attempts.iter().map(|parameters| (EarlierAttempts::SELECT, parameters.as_slice()));
    let statements: Vec<_> = iter::once((PersonAndTenant::SELECT, &key[..])).chain(attempts).collect();
    let (mut about, mut set) = (RecordContext::default(), None);
    tx.query_all(&statements, &mut |index, row| {
        if index == 0 {
            let PersonAndTenant { key, retention, subscription } = PersonAndTenant::read(row)?;
            about.key = PersonKey::open(&context.app.master, person, key);
            about.subscription = subscription;
            set = retention;
        } else {
            let EarlierAttempts { record, overflow, recent } = EarlierAttempts::read(row)?;
            (about.record, about.overflow, about.recent) = (record, overflow, recent);
        }
        Ok(())
    })?;
    let own = set.map(|value| (RETENTION.name().to_owned(), value)).into_iter().collect();
    Ok(RecordContext { retention: Options::<TenantOption>::new(own).get(RETENTION), ..about })
}

const RETENTION: Setting<TenantOption, Span> = TenantOption::SIGN_IN_RECORD_RETENTION;
