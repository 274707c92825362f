//! Operations: the list of the API. Router, documentation, permissions, metrics and tests walk these lists.

use chancery_record::Field;
use chancery_store::Mode;

use crate::{Body, Custom, QueryParameter, Relation, Reply, Shape};

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

/// The callers that may run an operation (`docs/roles.md`). For operations on the configuration it is the lowest role: those that
/// imply it may, too. The scope of the caller's role limits the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permit {
    /// User store administration.
    UserStore,
    /// The audit trail of a user store.
    UserStoreAudit,
    /// The audit trail of the configuration.
    Audit,
    /// System administrators.
    SystemAdmin,
    /// Customer administrators, within their customer.
    CustomerAdmin,
    /// Subscription administrators, within their subscription.
    SubscriptionAdmin,
    /// Tenant administrators, for the items that the tenant owns.
    TenantAdmin,
    /// Tenant administrators, also for the items assigned to the tenant.
    TenantMember,
    /// Administrators of any type, for items that are the same for all of them.
    Administrator,
    /// Records of sign-ins.
    SignInRecord,
    /// Application users and groups.
    ApplicationData,
    /// Administrators whose scope covers the item, and the person it is about: where the path names the caller.
    Oneself,
    /// People who signed in, at the user store of the path, about their own user there.
    Person,
    /// Anyone, without a token: the body holds the proof. Attempts are limited by address and login name.
    Public,
}

/// The change that a relation operation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationChange {
    /// PUT: replaces the whole set.
    Set,
    /// POST: adds links.
    Add,
    /// DELETE: removes links.
    Remove,
}

/// The action of an operation: one of the standard pattern's, or a custom function.
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
    /// Replaces these members of one (PUT).
    ReplaceMembers(&'static [&'static Field]),
    /// Changes the links of a relation of the resource.
    Relate(&'static Relation, RelationChange),
    /// Runs a custom function.
    Custom(Custom),
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
    /// The resource of the operation.
    pub shape: &'static Shape,
    /// The action.
    pub action: Action,
    /// The status of success.
    pub status: u16,
    /// The content of its answer.
    pub reply: Reply,
    /// One line for people.
    pub summary: &'static str,
    /// Whether the documents do not list it.
    pub addition: bool,
    /// Its own query parameters.
    pub query: &'static [QueryParameter],
    /// The values that `{type}` in its path can have; none where a choice of the resource lists them.
    pub choices: &'static [&'static str],
    /// The operation that replaces it, where its version is deprecated.
    pub successor: Option<&'static Op>,
    /// Whether it writes outside of the store that its path names, so that it runs even when that is read-only.
    pub outside_store: bool,
    /// Whether it is declared sensitive, whatever its resource is.
    pub sensitive: bool,
}

impl Op {
    /// An operation of the standard pattern, with the pattern's status and answer.
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
            choices: &[],
            successor: None,
            outside_store: false,
            sensitive: false,
        }
    }

    /// The same operation, with query parameters of its own.
    #[must_use]
    pub const fn with_query(mut self, query: &'static [QueryParameter]) -> Self {
        self.query = query;
        self
    }

    /// The same operation, where `{type}` in the path has one of these values.
    #[must_use]
    pub const fn choosing(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
        self
    }

    /// The same operation, declared sensitive: it grants rights, revokes them permanently, or decides who gets
    /// in. A page requires a recent proof of identity before it runs.
    #[must_use]
    pub const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    /// Whether it is sensitive (grants rights, or decides who or what gets in): by itself, by its resource, or
    /// by the linked resource.
    pub fn is_sensitive(&self) -> bool {
        let is_link = matches!(self.action, Action::Relate(relation, _) if relation.target.is_sensitive());
        self.writes() && (self.sensitive || self.shape.is_sensitive() || is_link)
    }

    /// The same operation, writing outside of the store that its path names.
    #[must_use]
    pub const fn outside_store(mut self) -> Self {
        self.outside_store = true;
        self
    }

    /// Whether it changes the content of a user store.
    pub const fn changes_store(&self) -> bool {
        self.writes() && !self.outside_store
    }

    /// The same operation, with another status and answer than the pattern's.
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
        self.mode().is_write()
    }

    /// The store mode.
    pub const fn mode(&self) -> Mode {
        match self.action {
            Action::Read if self.shape.reads.large => Mode::Long,
            Action::Read => Mode::Quick,
            Action::List => Mode::Long,
            Action::Custom(custom) if !custom.mode.is_write() => custom.mode,
            _ if self.shape.writes.bumps_epoch => Mode::WriteRights,
            _ => Mode::Write,
        }
    }

    /// Whether it takes the parameters of lists: filter, order, pages. One with its own parameters takes these
    /// alone.
    pub const fn is_list(&self) -> bool {
        self.reply.is_list() && matches!(self.mode(), Mode::Long) && self.query.is_empty()
    }

    /// Whether it takes a batch, and so a larger body.
    pub const fn is_batch(&self) -> bool {
        match self.action {
            Action::CreateBatch | Action::ReplaceBatch | Action::DeleteBatch => true,
            Action::Custom(custom) => custom.is_batch,
            _ => false,
        }
    }

    /// Whether a condition such as `If-Match` can apply: not to operations that create, or that are about many
    /// items.
    pub const fn has_item(&self) -> bool {
        match self.action {
            Action::Create | Action::Custom(Custom { body: Body::Resource, .. }) => false,
            _ => !self.is_batch() && self.status != 201,
        }
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
