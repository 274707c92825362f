//! The admin console. Its pages are generated from the field tables and the operations, and allow exactly what the roles
//! of the signed-in user allow in the API.
//!
//! No code here names a table or a statement: operations run in the same process, through [`chancery_web::App::perform`].

mod answer;
mod dispatch;
mod pages;
mod resources;
mod shell;

use std::pin::Pin;

use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_web::{AnswerBody, App, RequestBody};
use http::{Response, request::Parts};

pub use pages::setup::setup_path;

/// Whether the console shows an error message of the API in German. Tests ask it of every problem that they get, so that a reworded
/// message cannot lose its translation.
pub fn is_translated(message: &str) -> bool {
    shell::words::has_german_error_text(message)
}

/// Answers a request below `/console`.
pub fn answer<'a>(
    app: &'a App,
    parts: &'a Parts,
    body: &'a mut RequestBody,
    now: Timestamp,
) -> Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Problem>> + Send + 'a>> {
    resources::fill();
    Box::pin(answer::answer(app, parts, body, now))
}
