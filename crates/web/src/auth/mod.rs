//! Who calls: the visitor, the rights, and the binding of the token.

pub mod authorization;
pub mod rights;
pub mod token_binding;
pub mod visitor;
