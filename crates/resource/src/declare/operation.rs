//! Operations: what the interface is made of. Router, documentation, permissions, metrics and
//! tests walk these lists.

use chancery_record::Field;
use chancery_store::Mode;

use crate::{Body, Custom, Reply, Shape};

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
    /// Replaces these members of one (PUT).
    ReplaceMembers(&'static [&'static Field]),
    /// Changes the relation of this name.
    Relate(&'static str, Relating),
    /// Something of its own.
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
    /// What `{type}` in its path can be; none where a choice of the resource says so.
    pub choices: &'static [&'static str],
    /// What takes its place, where it is of a version that is deprecated.
    pub successor: Option<&'static Op>,
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
            choices: &[],
            successor: None,
            beside: false,
        }
    }

    /// The same operation, with query parameters of its own.
    #[must_use]
    pub const fn with_query(mut self, query: &'static [(&'static str, &'static str)]) -> Self {
        self.query = query;
        self
    }

    /// The same operation, where `{type}` in the path is one of these.
    #[must_use]
    pub const fn choosing(mut self, choices: &'static [&'static str]) -> Self {
        self.choices = choices;
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
        match self.action {
            Action::CreateBatch | Action::ReplaceBatch | Action::DeleteBatch => true,
            Action::Custom(custom) => custom.is_batch,
            _ => false,
        }
    }

    /// Whether a condition on one item can be meant: not by what creates, and not by what is about many.
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
