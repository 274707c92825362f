//! Records of sign-ins: what came of an attempt by a person who is known. Strangers make no rows.

use chancery_flow::NotAdmitted;
use chancery_management::sign_in::record::associated_data;
use chancery_record::Value;
use chancery_resource::settings::{Options, Owner};
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
}

impl Outcome {
    const fn name(self) -> &'static str {
        match self {
            Self::SignedIn => "SignedIn",
            Self::SteppedUp => "SteppedUp",
            Self::Refused(_) | Self::WrongCredentials | Self::WrongFactor => "Refused",
            Self::SignedOut => "SignedOut",
            Self::Reused => "Reused",
        }
    }

    const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Refused(NotAdmitted::Account | NotAdmitted::PasswordExpired) => Some("Locked"),
            Self::Refused(NotAdmitted::SecondFactorUnavailable) => Some("SecondFactorUnavailable"),
            Self::Refused(_) => Some("NotAdmitted"),
            Self::WrongCredentials => Some("Credentials"),
            Self::WrongFactor => Some("SecondFactor"),
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
    /// Writes the record; address and browser are encrypted under the person's key, so that they go with it. An attempt
    /// that failed is announced.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(self, context: &Context, tx: &mut Tx<'_>) -> Result<(), Problem> {
        let id = context.new_id();
        let about = about(context, tx, self.person, self.tenant)?;
        let text = StateTable::SignInRecord.insert(
            "(id, occurred_on, tenant_id, client_app_id, idp_instance_id, person_id, outcome, reason, methods, \
             acr, session_id, address, user_agent, expires_on) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        );
        tx.queue(&text, self.row(context, id, &about))?;
        let subscription = about.subscription;
        if self.outcome.name() != "Refused" {
            return Ok(());
        }
        let failed = SignInEvent {
            what: "attempt.failed",
            id,
            subscription,
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
        let nobody = about(context, tx, self.person, self.tenant)?;
        let kept = PersonKey::make(master, id);
        let kept = if let Value::Bytes(kept) = &kept { kept.as_slice() } else { &[] };
        let about = About { key: PersonKey::open(master, id, kept), ..nobody };
        drop(self.row(context, id, &about));
        write_for_nobody(context, tx, WRITES)
    }
}

/// The rows that an attempt that failed leaves: the record, its event, and the event's place in the queue.
const WRITES: usize = 3;

/// What a record depends on.
struct About {
    /// The key of the platform user, by which what is kept of the person is encrypted.
    key: Option<PersonKey>,
    /// The tenant's subscription.
    subscription: Option<Uuid>,
    /// How long the tenant keeps records (`SignInRecordRetention`), in ms.
    retention: i64,
}

fn about(context: &Context, tx: &mut Tx<'_>, person: Uuid, tenant: Uuid) -> Result<About, Problem> {
    let text = "SELECT u.audit_key, (SELECT o.value FROM option_value o WHERE o.apply_to_tenant_id = ?2 \
        AND o.name = ?3), (SELECT t.subscription_id FROM tenant t WHERE t.id = ?2) FROM application_user u \
        WHERE u.id = ?1";
    let parameters = [person.into(), tenant.into(), RETENTION.into()];
    let found = tx.one(text, &parameters, |row| {
        Ok((row.bytes(0)?.to_vec(), row.optional_text(1)?, row.optional_id(2)?))
    })?;
    let (kept, set, subscription) = found.map_or((None, None, None), |(kept, set, of)| (Some(kept), set, of));
    let own = set.map(|value| (RETENTION.to_owned(), value)).into_iter().collect();
    let retention = Options::new(Owner::Tenant, own).span(RETENTION);
    let key = kept.and_then(|kept| PersonKey::open(&context.app.master, person, &kept));
    Ok(About { key, subscription, retention })
}

const RETENTION: &str = "SignInRecordRetention";
