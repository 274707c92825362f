//! What an operation is given and what it answers.

use std::{
    cell::{Cell, RefCell},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use chancery_record::{Json, Timestamp, Value};
use uuid::Uuid;

use crate::{
    CursorKey, MasterKey, Memory, MetadataSource, Op, Out, Piece, Preconditions, Problem, Seal, Service,
    Work, sealed::Persons, settings::Options, work::Results,
};

/// What the caller's rights cover, and so what every query is limited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One user store.
    Store(StoreScope),
    /// The configuration, whole.
    Everything,
    /// The configuration of these parts, each with what is below it.
    Parts {
        /// Whole customers.
        customers: Vec<Uuid>,
        /// Whole subscriptions.
        subscriptions: Vec<Uuid>,
        /// What tenants own.
        tenants: Vec<Uuid>,
        /// Instances.
        instances: Vec<Uuid>,
        /// What is assigned to tenants.
        assigned: Vec<Uuid>,
        /// Whether it is asked for to be changed.
        writes: bool,
    },
}

/// The user store that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreScope {
    /// Its number in its tables.
    pub number: i64,
    /// Its instance's id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: Arc<Options>,
    /// The number of the snapshot of authenticators' metadata in effect, if there is one.
    pub metadata: Option<i64>,
}

impl Scope {
    /// The store's number; 0 for the configuration.
    pub const fn store(&self) -> i64 {
        match self {
            Self::Store(store) => store.number,
            _ => 0,
        }
    }

    /// The store; a problem where there is none.
    pub fn of_store(&self) -> Result<&StoreScope, Problem> {
        match self {
            Self::Store(store) => Ok(store),
            _ => Err(Problem::not_found("user store")),
        }
    }

    /// The store's instance id.
    pub const fn store_id(&self) -> Option<Uuid> {
        match self {
            Self::Store(store) => Some(store.id),
            _ => None,
        }
    }

    /// The same scope, asked for to be changed or only to be read.
    #[must_use]
    pub fn to_be_changed(mut self, changes: bool) -> Self {
        if let Self::Parts { writes, .. } = &mut self {
            *writes = changes;
        }
        self
    }

    /// The same scope without what is reached through a tenant alone.
    #[must_use]
    pub fn above_tenants(mut self) -> Self {
        if let Self::Parts { tenants, assigned, .. } = &mut self {
            tenants.clear();
            assigned.clear();
        }
        self
    }

    /// Whether secrets are shown: not to who sees some rows only because they are assigned to a
    /// tenant.
    pub const fn reveals(&self) -> bool {
        !matches!(self, Self::Parts { assigned, .. } if !assigned.is_empty())
    }

    /// What the audit trail and events call the source of a change.
    pub fn source(&self) -> &str {
        match self {
            Self::Store(store) => &store.name,
            _ => "management",
        }
    }
}

/// What argon2id spends on a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub iterations: u32,
    /// Lanes.
    pub parallelism: u32,
}

/// Which identities must be proven before one takes the other's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proofs {
    /// Neither.
    #[default]
    None,
    /// The one that is replaced.
    Current,
    /// The one that takes its place.
    Replacement,
    /// Both.
    Both,
}

impl Proofs {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Current, Self::Replacement, Self::Both];

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Current => "current",
            Self::Replacement => "replacement",
            Self::Both => "both",
        }
    }

    /// Whether the identity that is replaced must be proven.
    pub const fn of_current(self) -> bool {
        matches!(self, Self::Current | Self::Both)
    }

    /// Whether the identity that takes its place must be proven.
    pub const fn of_replacement(self) -> bool {
        matches!(self, Self::Replacement | Self::Both)
    }
}

/// What operations share: the keys they work with, made once at the start.
pub struct Desk {
    /// The master key.
    pub master: MasterKey,
    /// What hashing a password costs.
    pub hashing: Hashing,
    /// All operations, by service.
    pub services: &'static [&'static Service],
    /// Whether a program of the operator's delivers reset tokens where there is no mail server.
    pub has_reset_program: bool,
    /// Whether the server asks clients for certificates, and so can be shown one.
    pub asks_for_certificates: bool,
    /// Which identities must be proven before one takes the other's place.
    pub proofs: Proofs,
    /// Signs audit entries.
    pub seal: Seal,
    /// Makes and opens cursors.
    pub cursors: CursorKey,
    /// Runs through the identifiers of one millisecond, so that ids made one after another are
    /// in order.
    pub counter: AtomicU32,
    /// What links to this server begin with, without a slash at the end.
    pub public_url: String,
    /// Where metadata of authenticators come from.
    pub metadata: MetadataSource,
    /// The snapshot of them that was read last.
    pub snapshot: Memory,
}

/// One call of an operation: all that it may know of the world.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the request")]
pub struct Call {
    /// The operation.
    pub op: &'static Op,
    /// Path parameters in order, decoded, without `{userstore}`.
    pub path: Vec<String>,
    /// Path and query as sent, for links.
    pub address: String,
    /// Query parameters, decoded.
    pub query: Vec<(String, String)>,
    /// Conditions on the current representation.
    pub preconditions: Preconditions,
    /// The body.
    pub body: Option<Json>,
    /// The body of an operation that takes bytes, with its media type.
    pub bytes: Option<(String, Vec<u8>)>,
    /// What work between transactions came to.
    pub results: Results,
    /// Work that a rule found it needs first: see [`Call::need`].
    pub needed: Cell<Option<Work>>,
    /// Whether a PATCH body is a merge patch (RFC 7396).
    pub merge_patch: bool,
    /// What the caller's rights cover.
    pub scope: Scope,
    /// Who acts: a client app's id; none for the server itself.
    pub actor: Option<Uuid>,
    /// The client app that acts for whoever calls, by a token that it got in exchange for theirs.
    pub acting: Option<Uuid>,
    /// When.
    pub now: Timestamp,
    /// Answer as the real call would, and change nothing.
    pub dry_run: bool,
    /// A batch failed on the database: find out which elements are wrong.
    pub diagnose: bool,
    /// Whether the body of an answer may be read after the commit: a large resource must not be
    /// read while other writes wait.
    pub reads_later: bool,
    /// Whether the caller wants no body in the answer to a write (RFC 7240).
    pub minimal: bool,
    /// The keys of the persons that changes were told of, by their ids.
    pub persons: RefCell<Persons>,
    /// What operations share.
    pub desk: Arc<Desk>,
    /// Where the body of the answer goes.
    pub out: Out,
}

impl Call {
    /// A path parameter by its place.
    pub fn parameter(&self, place: usize) -> &str {
        self.path.get(place).map_or("", String::as_str)
    }

    /// A query parameter.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body; a problem when there is none.
    pub fn body(&self) -> Result<&Json, Problem> {
        self.body.as_ref().ok_or_else(|| Problem::invalid("This operation needs a JSON body."))
    }

    /// A new identifier: UUID version 7, in order of time.
    pub fn new_id(&self) -> Uuid {
        let mut bytes = random::<10>();
        let count = self.desk.counter.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        bytes[0] = count[2];
        bytes[1] = count[3];
        let milliseconds = u64::try_from(self.now.0).unwrap_or(0);
        uuid::Builder::from_unix_timestamp_millis(milliseconds, &bytes).into_uuid()
    }

    /// Does to the configuration what follows from a call in a user store, and tells it in the
    /// configuration's trail. The caller's rights do not limit it: what it reaches must.
    pub fn on_configuration<T>(&mut self, act: impl FnOnce(&Self) -> T) -> T {
        let store = std::mem::replace(&mut self.scope, Scope::Everything);
        let outcome = act(self);
        self.scope = store;
        outcome
    }

    /// A new concurrency token.
    pub fn new_token(&self) -> Value {
        Value::Text(BASE64_URL_SAFE_NO_PAD.encode(random::<16>()))
    }
}

/// Random bytes from the operating system's generator.
///
/// # Panics
/// When the generator fails: nothing safe could be done then.
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    // a generator that fails leaves nothing that could be done safely
    #[expect(clippy::expect_used, reason = "no secret, salt or token may be made without chance")]
    aws_lc_rs::rand::fill(&mut bytes).expect("the random generator works");
    bytes
}

/// What an operation answers. The body is in [`Call::out`].
#[derive(Debug, Default)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Headers beyond those that the edge adds.
    pub headers: Vec<(&'static str, String)>,
    /// Whether the body is one resource and so carries an `ETag`.
    pub tagged: bool,
    /// The body is still to be read: this resource, now that the change is committed.
    pub read_later: Option<Value>,
    /// The key of what was created.
    pub created: Option<String>,
    /// The media type of the body where it is not JSON.
    pub content_type: Option<&'static str>,
    /// There is no answer yet: what was done so far is committed, this is done outside of any
    /// transaction, and the operation is called again with its result.
    pub work: Option<Work>,
    /// There is no answer yet: a piece is done and committed, and the operation is called again
    /// for the next one.
    pub piece: Option<Piece>,
    /// What was done is to stay, but the caller is refused: a wrong password that was counted.
    pub refusal: Option<Box<Problem>>,
}

impl Answer {
    /// An answer with this status.
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            tagged: false,
            read_later: None,
            created: None,
            content_type: None,
            work: None,
            piece: None,
            refusal: None,
        }
    }

    /// A refusal that keeps what was done.
    pub fn refusing(problem: Problem) -> Self {
        Self { refusal: Some(Box::new(problem)), ..Self::new(0) }
    }

    /// No answer yet: this is to be done first, outside of any transaction.
    pub fn after(work: Work) -> Self {
        Self { work: Some(work), ..Self::new(0) }
    }

    /// No answer yet: a piece is done, the next one goes on from this state, which
    /// [`Call::result`] has as the only step. `done` items of `total` are behind.
    pub fn again<T: Send + Sync + 'static>(state: T, done: u64, total: u64) -> Self {
        Self { piece: Some(Piece { state: Arc::new(state), done, total }), ..Self::new(0) }
    }

    /// Whether this is what the caller is told, and neither a step on the way nor a refusal.
    pub const fn is_final(&self) -> bool {
        self.work.is_none() && self.piece.is_none() && self.refusal.is_none()
    }

    /// The answer with one resource.
    pub fn resource(status: u16) -> Self {
        Self { tagged: true, ..Self::new(status) }
    }
}

/// The SHA-256 of text, in lower-case hexadecimal.
pub fn digest(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().fold(String::with_capacity(64), |mut hex, byte| {
        hex.extend([byte >> 4, byte & 15].iter().filter_map(|half| char::from_digit(u32::from(*half), 16)));
        hex
    })
}

/// The strong `ETag` of a representation.
pub fn etag(body: &[u8]) -> String {
    tag_of(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body).as_ref())
}

/// The tag that a digest makes.
pub fn tag_of(digest: &[u8]) -> String {
    format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(digest.get(..16).unwrap_or_default()))
}
