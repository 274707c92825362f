//! The console: pages by which people administer. They are made from the field tables and the operations, and can do
//! what the person's roles can do through the interface, and nothing else.
//!
//! Nothing here names a table or a statement: operations run in the same process, through [`chancery_web::App::perform`].

mod agent;
mod assets;
mod boxed;
mod call;
mod carried;
mod csv;
mod directory;
mod dispatch;
mod failure;
mod fields;
mod first_sign_in;
mod forgery;
mod need;
mod pages;
mod parts;
mod presentation;
mod proof;
mod refusal;
mod render;
mod resources;
mod session;
mod setting;
mod setup;
mod undo;
mod visit;
mod words;

use std::pin::Pin;

use chancery_record::Timestamp;
use chancery_resource::Problem;
use chancery_web::{AnswerBody, App, RequestBody};
use http::{Response, request::Parts};

pub use setup::setup_path;

/// Answers a request below `/console`.
pub fn answer<'a>(
    app: &'a App,
    parts: &'a Parts,
    body: &'a mut RequestBody,
    now: Timestamp,
) -> Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, Problem>> + Send + 'a>> {
    Box::pin(visit::answer(app, parts, body, now))
}
