//! The OpenID provider: sign-ins in progress, sessions, codes and grants.
//!
//! `chancery_flow` decides the next step of a sign-in; `chancery_oauth` parses and validates requests. This crate
//! reads the data that both need from the database and writes the results. HTTP is handled by `chancery_web`.

mod access_pass;
mod acr;
mod action;
mod advance;
mod appearance;
mod application;
mod audience;
mod authorize;
mod claims;
mod code;
mod confirm;
mod consent;
mod console;
mod counts;
mod device;
mod device_grant;
mod end_session;
mod external;
mod facts;
mod grant;
mod granted;
mod issuance;
mod logout;
mod new_password;
mod open_questions;
mod own;
mod page;
mod passkey;
mod password;
mod pending_flow;
mod people;
mod person;
mod prepare;
mod preview;
mod provider;
mod questionnaire;
mod record;
mod redeem;
mod refresh;
mod refresh_token;
mod refresh_token_endpoints;
mod refused_requests;
mod registered;
mod reset;
mod response;
mod second_factor;
mod session;
mod sign_in_transaction;
mod step;
mod tokens;
mod userinfo;

pub use access_pass::AccessPassForm;
pub use acr::{ACR, is_at_least};
pub use action::PageAction;
pub use appearance::{Appearance, Appearances, Asset, Owners};
pub use application::Applications;
pub use authorize::LONGEST_QUERY;
pub use chancery_management::idp_instance::connection::Documents as ProviderDocuments;
pub use chancery_oauth::STANDARD_SCOPES;
pub use claims::{person_claims, platform_claims};
pub use confirm::Confirmation;
pub use console::{
    CONSOLE_RETURN, ConsoleEntry, ConsoleLifetimes, ConsolePreference, ConsoleSession,
    USE_MS as CONSOLE_USE_MS, console_digest, console_names, console_preference, end_console_session,
    find_console_session, is_setup_open, note_console_use, open_setup, spend_setup, store_console_preference,
};
pub use counts::Counts;
pub use device::{DEVICE, enter_page};
pub use device_grant::{DevicePolls, GRANT_TYPE as DEVICE_CODE};
pub use end_session::{SIGN_OUT, SIGNED_OUT, SignOutResponse, SignOutResult, SignedOut};
pub use external::{EXTERNAL, flow_of_state};
pub use logout::SignOutDeliveries;
pub use new_password::NewPassword;
pub use own::{OwnEnd, OwnSession, OwnUser, end_own_sessions, own_sessions, own_user, platform_user};
pub use page::{
    ACCESS_PASS, CHOOSE, CONFIRM, CONSENT, CONTINUE, ENROL, NEW_PASSWORD, PASSKEY, PASSWORD, QUESTIONNAIRE,
    RECOVERY, REFUSED, SECOND_FACTOR, TERMS,
};
pub use password::{Credentials, LONGEST as LONGEST_SECRET};
pub use pending_flow::{IN_ROW, PendingFlow};
pub use preview::preview_tokens;
pub use provider::{Provider, Visit};
pub use questionnaire::item_of;
pub use record::Origin;
pub use redeem::GRANT_TYPE as AUTHORIZATION_CODE;
pub use refresh::GRANT_TYPE as REFRESH_TOKEN;
pub use refresh_token_endpoints::shows_refresh_token;
pub use refused_requests::{RefusedKind, RefusedRequest, RefusedRequests, write_refused};
pub use registered::Registered;
pub use reset::{RESET, RESET_PATH, ResetLink, ResetRequest, ResetScope, reset_page};
pub use response::{AttemptResult, BrowserResponse, NewSession, Page, PageError};
pub use step::GivenConsent;
pub use userinfo::{LACKS_OPENID, UserInfoRefusal};
