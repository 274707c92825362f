//! The OpenID provider: sign-ins under way, sessions, codes and grants.
//!
//! What comes next in a sign-in is found by `chancery_flow`, how requests are read and judged by `chancery_oauth`.
//! Here is what both need from the database, and what is written. HTTP is the edge's.

mod application;
mod authorize;
mod code;
mod end_session;
mod kept_flow;
mod outcome;
mod password;
mod person;
mod provider;
mod record;
mod redeem;
mod session;
mod step;
mod userinfo;

pub use application::Applications;
pub use authorize::LONGEST_QUERY;
pub use end_session::{SIGN_OUT, SigningOut};
pub use kept_flow::KeptFlow;
pub use outcome::{NewSession, Outcome, Page, PageError};
pub use password::{Attempt, Begun, Credentials};
pub use provider::{Provider, Visit};
pub use record::Origin;
pub use redeem::GRANT_TYPE as AUTHORIZATION_CODE;
pub use step::{CHOOSE, CONTINUE, PASSWORD, REFUSED};
pub use userinfo::UserInfoRefusal;
