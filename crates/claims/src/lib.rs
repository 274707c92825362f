//! Claim rules: they select and rewrite the claims about a user for each token.
//!
//! Nothing here reads a clock, a database or HTTP. The caller decides which rules apply;
//! [`RuleSet::new`] compiles them, [`RuleSet::evaluate`] runs claims through them.
//!
//! # Groups
//!
//! The rules of one `priority` are a group. Groups run one after another, the lowest priority
//! first, each on the output of the previous one. The rules of a group all run on the same claims,
//! and their results are merged. Equal claims (type, value and source) are one claim. Without
//! rules, all claims are forwarded into both tokens.
//!
//! # Rule types
//!
//! A rule processes the claims of its `input_source`. It matches those in which its evaluation
//! patterns are found (see [`Pattern`]): that of the type, of the value or both, depending on its
//! `filter_target`.
//!
//! | Type | Forwards |
//! |---|---|
//! | `Filter` | the claims that it matches |
//! | `Transform` | the claims that it matches, rewritten |
//! | `Remove` | the claims that neither it nor another `Remove` of its group matches |
//! | `Add` | one new claim, if it matches a claim or has no patterns |
//!
//! - If a `Filter`, `Transform` or `Remove` of a group processes a claim, the claim is dropped unless
//!   one of these forwards it. All other claims pass unchanged, e.g. those of the identity provider in
//!   a group of rules for the platform's, or every claim in a group with only `Add`. So an `Add` in
//!   the group of a `Filter` does not undo it.
//! - `Remove` rules of a group act together: alone, each would forward the claims that the other
//!   removes.
//! - A `Transform` forwards only the claims that it matches: the others need a `Filter` or `Remove`
//!   in the same group. It rewrites the type, the value or both, depending on its `transform_target`:
//!   each match of the transformation pattern is replaced by the replacement, in which `$1` and
//!   `${name}` are groups, `$0` is the match and `$$` is a dollar (`${1}` if a letter follows). With an
//!   empty pattern the replacement replaces the complete text, unless it is empty too: then the text
//!   is unchanged.
//! - `Add` uses its replacements for type and value literally, and needs a type. The source of its
//!   claim is the platform; the rules of its own group do not process it.
//! - Protected claims ([`PROTECTED`]) pass every group unchanged. No rule processes them, and a rule
//!   with a protected result forwards nothing.
//!
//! # Destination and disclosure
//!
//! Initially, the destination of a claim is both tokens, and it is always disclosed. From group to
//! group, restrictions add up: destinations are AND-ed with the rule's `destination`, and a claim is
//! disclosed on request if it was before or the rule's `disclosure` requires it. If rules of one group
//! forward the same claim, the least restriction counts: destinations are OR-ed, and the claim is
//! always disclosed if one rule discloses it always. An added claim has the destination and the
//! disclosure of its rule. A claim for no token remains in the outcome, with the destination `None`.

mod choices;
mod claim;
mod exceeded;
mod group;
mod parsed_pattern;
mod pattern;
mod pool;
mod rule;
mod rule_set;
mod rule_set_cache;
mod trace;

pub use choices::{Destination, Disclosure, InputSource, RuleType, Source, Target};
pub use claim::{Claim, OutClaim, Outcome, PROTECTED, is_protected};
pub use exceeded::LimitExceeded;
pub use parsed_pattern::MAX_PATTERN_CHARACTERS;
pub use pattern::{Overflow, Pattern, TimeCheck};
pub use rule::{MAX_REPLACEMENT_CHARACTERS, Member, Rule};
pub use rule_set::{Fault, RuleSet, RuleSetError};
pub use rule_set_cache::RuleSetCache;
pub use trace::{Effect, TraceStep};

/// The maximum number of claims, before and after each group.
pub const MAX_CLAIMS: usize = 10_000;
/// The maximum length of a claim's type, and of its value, in bytes.
pub const MAX_TEXT_BYTES: usize = 64 << 10;
/// The maximum length of all types and values together, in bytes.
pub const MAX_TOTAL_BYTES: usize = 4 << 20;
/// The maximum number of rules in the paths of all claims together.
pub const MAX_PATHS: usize = 200_000;
/// The maximum number of steps of a trace.
pub const MAX_STEPS: usize = 10_000;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
