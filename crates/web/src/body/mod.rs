//! Bodies of requests and answers: parsed and compressed off the workers if they are large.

pub mod blocking;
pub mod compress;
pub mod parse;
