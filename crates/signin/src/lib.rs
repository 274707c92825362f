//! The OpenID provider: sign-ins under way, sessions, codes and grants.
//!
//! What comes next in a sign-in is found by `chancery_flow`, how requests are read and judged by `chancery_oauth`.
//! Here is what both need from the database, and what is written. HTTP is the edge's.

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
mod completion;
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
mod kept_flow;
mod logout;
mod new_password;
mod open_questions;
mod outcome;
mod own;
mod page;
mod passkey;
mod password;
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
mod refresh_token_care;
mod refused_requests;
mod registered;
mod reset;
mod ruled;
mod second_factor;
mod session;
mod step;
mod tokens;
mod userinfo;

pub use access_pass::PassTyped;
pub use acr::{ACR, is_at_least};
pub use action::Act;
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
    find_console_session, is_setup_open, keep_console_preference, note_console_use, open_setup, spend_setup,
};
pub use counts::Counts;
pub use device::{DEVICE, enter_page};
pub use device_grant::{GRANT_TYPE as DEVICE_CODE, Questions};
pub use end_session::{SIGN_OUT, SIGNED_OUT, SignOutAnswer, SignedOut, SigningOut};
pub use external::{EXTERNAL, flow_of_state};
pub use kept_flow::{IN_ROW, KeptFlow};
pub use logout::Told;
pub use new_password::NewPassword;
pub use outcome::{Judged, NewSession, Outcome, Page, PageError};
pub use own::{OwnEnd, OwnSession, OwnUser, end_own_sessions, own_sessions, own_user, platform_user};
pub use page::{
    ACCESS_PASS, CHOOSE, CONFIRM, CONSENT, CONTINUE, ENROL, NEW_PASSWORD, PASSKEY, PASSWORD, QUESTIONNAIRE,
    RECOVERY, REFUSED, SECOND_FACTOR, TERMS,
};
pub use password::{Credentials, LONGEST as LONGEST_SECRET};
pub use preview::preview_tokens;
pub use provider::{Provider, Visit};
pub use questionnaire::item_of;
pub use record::Origin;
pub use redeem::GRANT_TYPE as AUTHORIZATION_CODE;
pub use refresh::GRANT_TYPE as REFRESH_TOKEN;
pub use refresh_token_care::shows_refresh_token;
pub use refused_requests::{RefusedKind, RefusedRequest, RefusedRequests, write_refused};
pub use registered::Registered;
pub use reset::{RESET, RESET_PATH, ResetLink, ResetPlace, ResetRequest, reset_page};
pub use step::GivenConsent;
pub use userinfo::{LACKS_OPENID, UserInfoRefusal};
