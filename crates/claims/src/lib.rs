//! Claim rules: which claims about a user go into which token, and how they are written there.
//!
//! Nothing here knows a clock, a database or HTTP. The caller decides which rules apply;
//! [`RuleSet::new`] compiles them, [`RuleSet::evaluate`] runs claims through them.
//!
//! # Groups
//!
//! The rules of one `priority` are a group. Groups run one after another, the lowest priority
//! first, each on what the one before forwarded. The rules of a group all run on the same claims,
//! and what they forward is united. Equal claims (type, value and source) are one claim. Without
//! any rule everything is forwarded, into both tokens.
//!
//! # What a rule does
//!
//! A rule looks at the claims of its `input_source`. It matches those in which its evaluation
//! patterns are found (see [`Pattern`]): the type's, the value's or both, as its `filter_target`
//! says.
//!
//! | Type | Forwards |
//! |---|---|
//! | `Filter` | the claims that it matches |
//! | `Transform` | the claims that it matches, rewritten |
//! | `Remove` | the claims that neither it nor another `Remove` of its group matches |
//! | `Add` | one claim of its own, if it matches a claim, or has nothing to match |
//!
//! - A group decides on a claim when a `Filter`, `Transform` or `Remove` of it looks at the claim:
//!   then only what one of these forwards goes on. All other claims pass unchanged, e.g. those of the
//!   identity provider in a group of rules for the platform's, or every claim in a group of `Add`
//!   alone. So an `Add` beside a `Filter` does not undo it.
//! - `Remove` rules of a group act together. Each for itself would forward what the other is to
//!   remove.
//! - A `Transform` does not forward what it does not match: that takes a `Filter` or `Remove`
//!   beside it. It rewrites the type, the value or both, as its `transform_target` says: each match
//!   of the transformation pattern is replaced by the replacement, in which `$1` and `${name}` are
//!   groups, `$0` is the match and `$$` is a dollar (`${1}` where a letter follows). With an empty
//!   pattern the replacement replaces the complete text, unless it is empty too: then the text stays.
//! - `Add` uses its replacements for type and value literally, and needs a type. Its claim is
//!   the platform's; the rules of its own group do not see it.
//! - Protected claims ([`PROTECTED`]) pass every group unchanged. No rule looks at them, and a rule
//!   whose result would be one forwards nothing.
//!
//! # Where a claim goes
//!
//! A claim begins with both tokens as its destination, disclosed always. From group to group the
//! narrower counts: destinations are AND-ed with the rule's `destination`, and a claim is disclosed
//! on request if it was before or the rule's `disclosure` says so. Where rules of one group forward
//! the same claim, the wider counts: destinations are OR-ed, and it is disclosed always if one says
//! so. An added claim has the destination and the disclosure of its rule. A claim for no token stays
//! in the outcome, with the destination `None`.

mod choices;
mod claim;
mod exceeded;
mod group;
mod pattern;
mod pool;
mod reading;
mod remembered;
mod rule;
mod rule_set;
mod trace;

pub use choices::{Destination, Disclosure, InputSource, RuleType, Source, Target};
pub use claim::{Claim, OutClaim, Outcome, PROTECTED, is_protected};
pub use exceeded::Exceeded;
pub use pattern::{GoOn, MAX_PATTERN_CHARACTERS, Overflow, Pattern};
pub use remembered::RuleSets;
pub use rule::{MAX_REPLACEMENT_CHARACTERS, Member, Rule};
pub use rule_set::{Fault, RuleSet, RuleSetError};
pub use trace::{Effect, MAX_STEPS, Step};

/// The most claims, before and after each group.
pub const MAX_CLAIMS: usize = 10_000;
/// The most bytes of a claim's type, and of its value.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// The most bytes of all types and values together.
pub const MAX_TOTAL_BYTES: usize = 4 << 20;
/// The most rules that all claims may have passed, added up over the claims.
pub const MAX_PATHS: usize = 200_000;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
