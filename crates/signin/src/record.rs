//! Records of sign-ins: what came of an attempt by a person who is known. Strangers make no rows. Failed attempts of a person from one
//! address are one record an hour, which counts them.

use std::fmt::Write as _;

use chancery_flow::NotAdmitted;
use chancery_management::sign_in::record::associated_data;
use chancery_record::Value;
use chancery_resource::settings::{Options, Setting, Span, TenantOption};
use chancery_resource::{Context, PersonKey, Problem, SignInEvent, StateTable, Tx};
use chancery_userstore::password::write_for_nobody;
use uuid::Uuid;

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The person is signed in.
    SignedIn,
    /// The person, who was signed in, proved more.
    SteppedUp,
    /// The person is not admitted.
    Refused(NotAdmitted),
    /// The first factor was wrong.
    WrongCredentials,
    /// A second factor was not proven.
    WrongFactor,
    /// The person signed out.
    SignedOut,
    /// A refresh token that was replaced was shown again.
    Reused,
    /// The claim rules in force cannot run: there are no tokens.
    RulesUnusable,
}

impl Outcome {
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

/// Where a request of a browser comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The address.
    pub address: String,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
}

/// A record of a sign-in.
pub struct SignInRecord<'a> {
    /// What came of it.
    pub outcome: Outcome,
    /// The tenant.
    pub tenant: Uuid,
    /// The client app.
    pub application: Option<Uuid>,
    /// The instance of the first factor.
    pub instance: Option<Uuid>,
    /// The platform user.
    pub person: Uuid,
    /// How the person proved who they are: the words of `amr`.
    pub methods: &'a [&'static str],
    /// The class that was reached.
    pub acr: Option<&'static str>,
    /// The session.
    pub session: Option<Uuid>,
    /// Where it came from, if that is a browser.
    pub origin: Option<&'a Origin>,
}

/// The longest `User-Agent` that is kept, in bytes.
const USER_AGENT: usize = 512;

impl SignInRecord<'_> {
    /// Writes the record, or counts a failed attempt in the record of the hour; address and browser are encrypted under the
    /// person's key, so that they go with it. An attempt that failed is announced.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(mut self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let counted = self.outcome.is_failure().then(|| Counted::of(&self, context));
        let about = about(context, tx, &self, counted.as_ref())?;
        let is_crowded = about.record.is_none() && about.lately >= MOST_LATELY;
        if is_crowded {
            // too many addresses: those beyond are one record, which names none
            self.origin = None;
        }
        let found = if is_crowded { about.crowd } else { about.record };
        let id = found.unwrap_or_else(|| context.new_id());
        let text = StateTable::SignInRecord.insert(
            "(id, occurred_on, tenant_id, client_app_id, idp_instance_id, person_id, outcome, reason, methods, \
             acr, session_id, address, user_agent, expires_on, last_attempt_on) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?2) \
             ON CONFLICT (id) DO UPDATE SET attempts = sign_in_record.attempts + 1, last_attempt_on = excluded.last_attempt_on, \
             client_app_id = excluded.client_app_id, idp_instance_id = excluded.idp_instance_id, methods = excluded.methods",
        );
        tx.queue(&text, self.row(context, id, &about))?;
        let Some(counted) = counted else { return Ok(()) };
        let digest = if is_crowded { counted.crowd } else { counted.digest };
        let text = StateTable::SignInAttempt.insert(
            "(digest, record_id, expires_on) VALUES (?1, ?2, ?3) ON CONFLICT (digest) DO UPDATE \
             SET record_id = excluded.record_id, expires_on = CASE \
             WHEN sign_in_attempt.record_id = excluded.record_id THEN sign_in_attempt.expires_on \
             ELSE excluded.expires_on END",
        );
        tx.queue(&text, vec![digest.into(), id.into(), context.now.plus(HOUR).0.into()])?;
        let failed = SignInEvent {
            what: "attempt.failed",
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

    fn row(&self, context: &Context, id: Uuid, about: &About) -> Vec<Value> {
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

    /// Works as hard as for the record of an attempt that failed, and leaves none: there is no such person. Each write of a
    /// record and of its event has one in its place, and what would be encrypted is.
    ///
    /// # Errors
    /// Those of the store.
    pub fn feign(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let (master, id) = (&context.app.master, context.new_id());
        let nobody = about(context, tx, &self, Some(&Counted::of(&self, context)))?;
        let kept = PersonKey::make(master, id);
        let kept = if let Value::Bytes(kept) = &kept { kept.as_slice() } else { &[] };
        let about = About { key: PersonKey::open(master, id, kept), ..nobody };
        drop(self.row(context, id, &about));
        write_for_nobody(context, tx, WRITES)
    }
}

/// The rows that an attempt that failed leaves: the record, what finds it again, its event, and the event's place in the queue.
const WRITES: usize = 4;
/// How long failed attempts are counted in one record, in ms.
const HOUR: i64 = 3_600_000;
/// The most records of a person within an hour that failed attempts from a new address add to.
const MOST_LATELY: i64 = 100;

/// Under what a failed attempt is counted.
struct Counted {
    /// The digest of the person, the tenant, the reason and the address.
    digest: Vec<u8>,
    /// The same for all addresses beyond the bound.
    crowd: Vec<u8>,
}

impl Counted {
    fn of(record: &SignInRecord<'_>, context: &Context) -> Self {
        let reason = record.outcome.reason().unwrap_or_default();
        // rules are of a client app: those that cannot run are one record for each
        let application = record.application.filter(|_| record.outcome == Outcome::RulesUnusable);
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
        Self { digest: digest(address), crowd: digest("others") }
    }
}

/// What a record depends on.
#[derive(Default)]
struct About {
    /// The key of the platform user, by which what is kept of the person is encrypted.
    key: Option<PersonKey>,
    /// The tenant's subscription.
    subscription: Option<Uuid>,
    /// How long the tenant keeps records (`SignInRecordRetention`), in ms.
    retention: i64,
    /// The record that counts failed attempts from the address.
    record: Option<Uuid>,
    /// The one that counts those from addresses beyond the bound.
    crowd: Option<Uuid>,
    /// How many records the person has of the last hour, up to the bound.
    lately: i64,
}

fn about(
    context: &Context,
    tx: &mut Tx<'_>,
    record: &SignInRecord<'_>,
    counted: Option<&Counted>,
) -> Result<About, Problem> {
    let plain = "SELECT u.audit_key, (SELECT o.value FROM option_value o WHERE o.apply_to_tenant_id = ?2 \
        AND o.name = ?3), (SELECT t.subscription_id FROM tenant t WHERE t.id = ?2)";
    let (person, now) = (record.person, context.now);
    let mut parameters = vec![person.into(), record.tenant.into(), RETENTION.name().into()];
    let mut text = plain.to_owned();
    if let Some(counted) = counted {
        // ids begin with the time at which they were made
        let milliseconds = u64::try_from(now.0 - HOUR).unwrap_or(0);
        let hour_ago = uuid::Builder::from_unix_timestamp_millis(milliseconds, &[0; 10]).into_uuid();
        let (digest, crowd) = (counted.digest.clone(), counted.crowd.clone());
        parameters.extend([digest.into(), crowd.into(), now.0.into(), hour_ago.into()]);
        let _ = write!(
            text,
            ", (SELECT a.record_id FROM sign_in_attempt a WHERE a.digest = ?4 AND a.expires_on > ?6), \
             (SELECT a.record_id FROM sign_in_attempt a WHERE a.digest = ?5 AND a.expires_on > ?6), \
             (SELECT count(*) FROM (SELECT 1 FROM sign_in_record r WHERE r.person_id = ?1 AND r.id > ?7 \
             LIMIT {MOST_LATELY}) lately)"
        );
    }
    text.push_str(" FROM application_user u WHERE u.id = ?1");
    let found = tx.one(&text, &parameters, |row| {
        let mut about = About {
            key: PersonKey::open(&context.app.master, person, row.bytes(0)?),
            subscription: row.optional_id(2)?,
            ..About::default()
        };
        if counted.is_some() {
            (about.record, about.crowd, about.lately) =
                (row.optional_id(3)?, row.optional_id(4)?, row.int(5)?);
        }
        Ok((about, row.optional_text(1)?))
    })?;
    let (about, set) = found.unwrap_or_default();
    let own = set.map(|value| (RETENTION.name().to_owned(), value)).into_iter().collect();
    Ok(About { retention: Options::<TenantOption>::new(own).get(RETENTION), ..about })
}

const RETENTION: Setting<TenantOption, Span> = TenantOption::SIGN_IN_RECORD_RETENTION;
