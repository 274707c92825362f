//! Requests and answers of HTTP, and their parts: addresses, codings, headers.

pub mod answer;
pub mod answer_headers;
pub mod base_path;
pub mod clock;
pub mod coding;
pub mod compressed_text;
pub mod peer;
pub mod request;
