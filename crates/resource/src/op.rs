//! Operations: what the interface is made of. Router, documentation, permissions, metrics and
//! tests walk these lists.

use chancery_store::{Mode, Tx};

use crate::{Answer, Call, Problem, Shape};

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Who may call an operation: section 7 of the contract's decisions. Of the configuration it is the
/// lowest role, and whose role it is limits what is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permit {
    /// User store administration.
    UserStore,
    /// The audit trail of a user store.
    UserStoreAudit,
    /// The audit trail of the configuration.
    Audit,
    /// The administrator of everything.
    SystemAdmin,
    /// Those of customers, within their customer.
    CustomerAdmin,
    /// Those of subscriptions, within their subscription.
    SubscriptionAdmin,
    /// Those of tenants, for what the tenant owns.
    TenantAdmin,
    /// Those of tenants, also for what is assigned to the tenant.
    TenantMember,
    /// Administrators of any kind, for what is the same for all.
    Administrator,
    /// Application users and groups.
    ApplicationData,
    /// Administrators whose scope covers it, and whoever it is about: a path that names the caller.
    Oneself,
    /// Anyone, without a token: what the body holds is the proof. Such operations are limited by
    /// address and login name.
    Public,
}

/// What a relation operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relating {
    /// PUT: replaces the whole set.
    Set,
    /// POST: adds.
    Add,
    /// DELETE: removes.
    Remove,
}

/// What an operation does: a word of the standard pattern, or a function of its own.
#[derive(Clone, Copy)]
pub enum Action {
    /// Lists the resource.
    List,
    /// Creates one.
    Create,
    /// Reads one.
    Read,
    /// Replaces one (PUT).
    Replace,
    /// Changes one (PATCH).
    Patch,
    /// Deletes one.
    Delete,
    /// Creates many, all or none.
    CreateBatch,
    /// Replaces many, all or none.
    ReplaceBatch,
    /// Deletes many, all or none.
    DeleteBatch,
    /// Replaces these members of one (PUT), columns as listed.
    ReplaceMembers(&'static [&'static str]),
    /// Changes the relation of this name.
    Relate(&'static str, Relating),
    /// Something of its own.
    Custom(Custom),
}

/// The function of an operation of its own.
pub type Run = fn(&mut Call, &mut Tx<'_>) -> Result<Answer, Problem>;

/// An operation of its own.
#[derive(Clone, Copy)]
pub struct Custom {
    /// What it does.
    pub run: Run,
    /// How it uses the store.
    pub mode: Mode,
    /// What its answer holds.
    pub reply: Reply,
    /// What it reads.
    pub body: Body,
    /// Whether it has work to do between transactions.
    pub works: bool,
}

impl Custom {
    /// Reads little, without a body, and answers with one resource.
    pub const fn reading(run: Run) -> Self {
        Self { run, mode: Mode::Quick, reply: Reply::One, body: Body::None, works: false }
    }

    /// Reads much, without a body, and answers with many resources.
    pub const fn listing(run: Run) -> Self {
        Self { run, mode: Mode::Long, reply: Reply::Many, body: Body::None, works: false }
    }

    /// Writes, without a body, and answers with one resource.
    pub const fn writing(run: Run) -> Self {
        Self { run, mode: Mode::Write, reply: Reply::One, body: Body::None, works: false }
    }

    /// Writes, and has work to do between transactions: it does not begin while there is too much.
    pub const fn working(run: Run) -> Self {
        Self { works: true, ..Self::writing(run) }
    }

    /// The same with a body.
    #[must_use]
    pub const fn taking(mut self, body: Body) -> Self {
        self.body = body;
        self
    }

    /// The same with another answer.
    #[must_use]
    pub const fn replying(mut self, reply: Reply) -> Self {
        self.reply = reply;
        self
    }
}

/// What an operation of its own reads.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Nothing.
    None,
    /// A JSON object with these members.
    Form(&'static BodyForm),
    /// Any JSON object, told by this schema.
    Json(&'static JsonForm),
    /// Bytes of these media types, at most so many.
    Bytes(&'static [&'static str], usize),
}

/// A JSON object of an operation's own: fields, as a resource has them.
#[derive(Debug)]
pub struct BodyForm {
    /// Its name in the OpenAPI document.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its members.
    pub fields: &'static [chancery_record::Field],
}

impl BodyForm {
    /// The form of a record.
    pub const fn of<R: chancery_record::Record>(name: &'static str) -> Self {
        Self { name, about: R::ABOUT, fields: R::FIELDS }
    }
}

/// A JSON object that is told by a schema of its own.
#[derive(Debug)]
pub struct JsonForm {
    /// Its name in the OpenAPI document.
    pub name: &'static str,
    /// Its schema; `{"$ref": "#/components/schemas/X"}` names a resource of the same service.
    pub schema: fn() -> serde_json::Value,
}

/// What an answer holds.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    /// One resource.
    One,
    /// An array of resources.
    Many,
    /// The owning resource.
    Owner,
    /// `{items, totalCount}` of resources.
    Items,
    /// An object of the operation's own.
    Form(&'static BodyForm),
    /// An object of the operation's own, told by a schema.
    Json(&'static JsonForm),
    /// Something of one of these media types.
    Content(&'static [&'static str]),
    /// Nothing.
    Empty,
}

impl Reply {
    /// Whether it is a list, with a list's parameters.
    pub const fn is_list(&self) -> bool {
        matches!(self, Self::Many | Self::Items)
    }
}

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// An operation.
pub struct Op {
    /// Its name in the documents, and its `operationId`.
    pub name: &'static str,
    /// Its method.
    pub method: Method,
    /// Its path below the service's base.
    pub path: &'static str,
    /// Who may call it.
    pub permit: Permit,
    /// The resource it is about.
    pub shape: &'static Shape,
    /// What it does.
    pub action: Action,
    /// The status of success.
    pub status: u16,
    /// What it answers.
    pub reply: Reply,
    /// One line for people.
    pub summary: &'static str,
    /// Whether the documents do not list it.
    pub addition: bool,
    /// Query parameters of its own, each a number: name and meaning.
    pub query: &'static [(&'static str, &'static str)],
    /// Whether it writes beside the store that its path names, and so even when that is read-only.
    pub beside: bool,
}

impl Op {
    /// An operation of the standard pattern. Its status and answer are the pattern's.
    pub const fn new(
        name: &'static str,
        method: Method,
        path: &'static str,
        permit: Permit,
        shape: &'static Shape,
        action: Action,
        summary: &'static str,
    ) -> Self {
        let (status, reply) = match action {
            Action::List | Action::CreateBatch | Action::ReplaceBatch => (200, Reply::Many),
            Action::Read => (200, Reply::One),
            Action::Create => (201, Reply::One),
            Action::Replace | Action::Patch | Action::ReplaceMembers(_) | Action::Relate(..) => {
                (202, Reply::One)
            }
            Action::Delete | Action::DeleteBatch => (204, Reply::Empty),
            Action::Custom(custom) => (200, custom.reply),
        };
        Self {
            name,
            method,
            path,
            permit,
            shape,
            action,
            status,
            reply,
            summary,
            addition: false,
            query: &[],
            beside: false,
        }
    }

    /// The same operation, with query parameters of its own.
    #[must_use]
    pub const fn with_query(mut self, query: &'static [(&'static str, &'static str)]) -> Self {
        self.query = query;
        self
    }

    /// The same operation, writing beside the store that its path names.
    #[must_use]
    pub const fn beside(mut self) -> Self {
        self.beside = true;
        self
    }

    /// Whether it changes what is in a user store.
    pub const fn changes_store(&self) -> bool {
        self.writes() && !self.beside
    }

    /// The same operation, answering otherwise than the pattern.
    #[must_use]
    pub const fn answering(mut self, status: u16, reply: Reply) -> Self {
        self.status = status;
        self.reply = reply;
        self
    }

    /// The same operation, marked as not listed in the documents.
    #[must_use]
    pub const fn added(mut self) -> Self {
        self.addition = true;
        self
    }

    /// Whether it changes data.
    pub const fn writes(&self) -> bool {
        matches!(self.mode(), Mode::Write)
    }

    /// How it uses the store.
    pub const fn mode(&self) -> Mode {
        match self.action {
            Action::Read if self.shape.large => Mode::Long,
            Action::Read => Mode::Quick,
            Action::List => Mode::Long,
            Action::Custom(custom) => custom.mode,
            _ => Mode::Write,
        }
    }

    /// Whether it takes a batch, and so a larger body.
    pub const fn is_batch(&self) -> bool {
        matches!(self.action, Action::CreateBatch | Action::ReplaceBatch | Action::DeleteBatch)
    }

    /// Whether it reads a body.
    pub const fn takes_body(&self) -> bool {
        match self.action {
            Action::List | Action::Read | Action::Delete => false,
            Action::Custom(custom) => !matches!(custom.body, Body::None),
            _ => true,
        }
    }
}

/// A service: a list of operations under one base path, documented together.
pub struct Service {
    /// Its name in `operations.tsv`.
    pub name: &'static str,
    /// Its version there.
    pub version: &'static str,
    /// Its title for people.
    pub title: &'static str,
    /// What every path begins with.
    pub base: &'static str,
    /// Its operations, a list a resource.
    pub operations: &'static [&'static [Op]],
}

impl Service {
    /// All its operations.
    pub fn all(&self) -> impl Iterator<Item = &'static Op> {
        self.operations.iter().flat_map(|list| list.iter())
    }
}

/// The nine operations of the standard resource pattern of document 2: for the resource's name,
/// its path, who may read, who may write, and its shape.
///
/// `standard!("Customer", "/Customer", CustomerRead, CustomerWrite, &CUSTOMER)` is an array of
/// `GetCustomers`, `CreateCustomer`, `UpdateCustomer`, `PatchCustomer`, `GetCustomer`,
/// `DeleteCustomer` and the batches `CreateCustomerBatch`, `UpdateCustomerBatch` and
/// `DeleteCustomerBatch`.
#[macro_export]
macro_rules! standard {
    ($name:literal, $path:literal, $read:ident, $write:ident, $shape:expr) => {{
        use $crate::{Action as A, Method as M, Op, Permit};
        const ONE: &str = concat!($path, "/{id}");
        const BATCH: &str = concat!($path, "/batch");
        const READ: Permit = Permit::$read;
        const WRITE: Permit = Permit::$write;
        [
            Op::new(
                concat!("Get", $name, "s"),
                M::Get,
                $path,
                READ,
                $shape,
                A::List,
                concat!("Lists every ", $name, "."),
            ),
            Op::new(
                concat!("Create", $name),
                M::Post,
                $path,
                WRITE,
                $shape,
                A::Create,
                concat!("Creates a ", $name, "."),
            ),
            Op::new(
                concat!("Update", $name),
                M::Put,
                ONE,
                WRITE,
                $shape,
                A::Replace,
                concat!("Replaces a ", $name, "."),
            ),
            Op::new(
                concat!("Patch", $name),
                M::Patch,
                ONE,
                WRITE,
                $shape,
                A::Patch,
                concat!("Changes a ", $name, "."),
            ),
            Op::new(
                concat!("Get", $name),
                M::Get,
                ONE,
                READ,
                $shape,
                A::Read,
                concat!("Reads a ", $name, "."),
            ),
            Op::new(
                concat!("Delete", $name),
                M::Delete,
                ONE,
                WRITE,
                $shape,
                A::Delete,
                concat!("Deletes a ", $name, "."),
            ),
            Op::new(
                concat!("Create", $name, "Batch"),
                M::Post,
                BATCH,
                WRITE,
                $shape,
                A::CreateBatch,
                concat!("Creates many of ", $name, ", all or none."),
            ),
            Op::new(
                concat!("Update", $name, "Batch"),
                M::Put,
                BATCH,
                WRITE,
                $shape,
                A::ReplaceBatch,
                concat!("Replaces many of ", $name, ", all or none."),
            ),
            Op::new(
                concat!("Delete", $name, "Batch"),
                M::Delete,
                BATCH,
                WRITE,
                $shape,
                A::DeleteBatch,
                concat!("Deletes many of ", $name, ", all or none."),
            ),
        ]
    }};
}

/// The three operations of a relation: what they are called, their path, who may write, the shape
/// and the relation's name.
///
/// `relation!("IdpInstanceTenants", "/IdpInstance/{id}/tenants", SubscriptionAdmin, &IDP_INSTANCE,
/// "tenants")` is an array of `SetIdpInstanceTenants`, `AddIdpInstanceTenants` and
/// `RemoveIdpInstanceTenants`.
#[macro_export]
macro_rules! relation {
    ($name:literal, $path:literal, $write:ident, $shape:expr, $relation:literal) => {{
        use $crate::{Action as A, Method as M, Op, Permit, Relating as R};
        const WRITE: Permit = Permit::$write;
        [
            Op::new(
                concat!("Set", $name),
                M::Put,
                $path,
                WRITE,
                $shape,
                A::Relate($relation, R::Set),
                concat!("Replaces the set ", $relation, "."),
            ),
            Op::new(
                concat!("Add", $name),
                M::Post,
                $path,
                WRITE,
                $shape,
                A::Relate($relation, R::Add),
                concat!("Adds to the set ", $relation, "."),
            ),
            Op::new(
                concat!("Remove", $name),
                M::Delete,
                $path,
                WRITE,
                $shape,
                A::Relate($relation, R::Remove),
                concat!("Removes from the set ", $relation, "."),
            ),
        ]
    }};
}

/// Operations that the documents mention without listing them.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
pub const fn added<const COUNT: usize>(mut operations: [Op; COUNT]) -> [Op; COUNT] {
    let mut at = 0;
    while at < COUNT {
        operations[at].addition = true;
        at += 1;
    }
    operations
}

/// Of the operations of [`standard!`], those at these places are not listed in the documents.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "in a constant: out of bounds does not compile")]
pub const fn added_at<const COUNT: usize, const SOME: usize>(
    mut operations: [Op; COUNT],
    places: [usize; SOME],
) -> [Op; COUNT] {
    let mut at = 0;
    while at < SOME {
        operations[places[at]].addition = true;
        at += 1;
    }
    operations
}
