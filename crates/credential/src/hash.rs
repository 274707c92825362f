//! Password hashes: argon2id (RFC 9106), stored as PHC strings.
//!
//! A PHC string is itself confidential, because it allows offline guessing: no type of this crate holds one and
//! can be printed, and callers keep it out of `Debug` and logs.
//!
//! A password is hashed in its normalized form. Before 0.2.0 hashes were of the typed bytes, so these are
//! tried, too, if they differ.

use std::borrow::Cow;

use argon2::{
    ARGON2ID_IDENT, Algorithm, Argon2, Params, PasswordHasher, PasswordVerifier, Version,
    password_hash::phc::PasswordHash,
};
use chancery_record::Secret;

use crate::{MAX_PASSWORD_BYTES, form::normalized};

/// The bytes of a salt (RFC 9106, section 3.1).
const SALT: usize = 16;
/// The bytes of a hash.
const OUTPUT: usize = 32;
/// The minimum parameters, which OWASP's Password Storage Cheat Sheet calls equally strong: KiB of memory and
/// passes, for one lane.
const MINIMA: [(u32, u32); 5] = [(47_104, 1), (19_456, 2), (12_288, 3), (9_216, 4), (7_168, 5)];
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_ITERATIONS: u32 = 16;
const MAX_PARALLELISM: u32 = 8;

/// The maximum number of earlier passwords that [`is_among`] checks: each costs a hash.
pub const MAX_HISTORY: usize = 24;

/// The cost parameters of a hash (RFC 9106, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    memory_kib: u32,
    iterations: u32,
    parallelism: u32,
}

impl Default for Parameters {
    fn default() -> Self {
        Self { memory_kib: 19_456, iterations: 2, parallelism: 1 }
    }
}

impl Parameters {
    /// Parameters of this memory in KiB, passes over it, and lanes.
    ///
    /// # Errors
    /// The parameters are too weak (below all of OWASP's equivalent settings) or too high (over 1 GiB, 16 passes or 8
    /// lanes).
    pub fn new(memory_kib: u32, iterations: u32, parallelism: u32) -> Result<Self, String> {
        if !MINIMA.iter().any(|&(memory, passes)| memory_kib >= memory && iterations >= passes) {
            let minima = MINIMA.map(|(memory, passes)| format!("{memory} and {passes}")).join(", ");
            return Err(format!(
                "memory of {memory_kib} KiB and {iterations} iterations are too weak; at least one of: {minima}"
            ));
        }
        let parameters = Self { memory_kib, iterations, parallelism };
        if parallelism == 0 || !parameters.are_bounded() {
            return Err(format!(
                "at most {MAX_MEMORY_KIB} KiB of memory, {MAX_ITERATIONS} iterations, \
                 1 to {MAX_PARALLELISM} lanes"
            ));
        }
        Ok(parameters)
    }

    /// The minimum of argon2id, which [`Parameters::new`] refuses: for test servers, where passwords
    /// protect nothing.
    #[cfg(feature = "test-cost")]
    pub const fn for_tests() -> Self {
        Self { memory_kib: 8, iterations: 1, parallelism: 1 }
    }

    /// The memory of one hash in KiB.
    pub const fn memory_kib(&self) -> u32 {
        self.memory_kib
    }

    /// The number of passes over the memory.
    pub const fn iterations(&self) -> u32 {
        self.iterations
    }

    /// The number of lanes.
    pub const fn parallelism(&self) -> u32 {
        self.parallelism
    }

    fn are_bounded(&self) -> bool {
        self.memory_kib <= MAX_MEMORY_KIB
            && self.iterations <= MAX_ITERATIONS
            && self.parallelism <= MAX_PARALLELISM
    }

    fn engine(&self) -> Result<Argon2<'static>, HashError> {
        let params = Params::new(self.memory_kib, self.iterations, self.parallelism, Some(OUTPUT));
        params
            .map(|params| Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
            .map_err(|_| HashError::Failed)
    }
}

/// Why a password cannot be hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashError {
    /// The password is longer than [`MAX_PASSWORD_BYTES`]; the policy refuses it before.
    TooLong,
    /// The system gives no random bytes.
    Random,
    /// There is not enough memory.
    Failed,
}

impl std::fmt::Display for HashError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::TooLong => "the password is too long to be hashed",
            Self::Random => "no random bytes for a salt",
            Self::Failed => "hashing a password failed; is there enough memory?",
        })
    }
}

impl std::error::Error for HashError {}

/// The result of verifying a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Whether the password is right.
    pub right: bool,
    /// Whether it is right and its hash has outdated parameters, or is of another form of the
    /// password: hash it anew.
    pub needs_rehash: bool,
}

/// Hashes a password with a new random salt; returns a PHC string.
pub fn hash(password: &Secret, parameters: &Parameters) -> Result<String, HashError> {
    let password = normalized(password);
    if password.expose().len() > MAX_PASSWORD_BYTES {
        return Err(HashError::TooLong);
    }
    let mut salt = [0; SALT];
    aws_lc_rs::rand::fill(&mut salt).map_err(|_| HashError::Random)?;
    let hashed = parameters.engine()?.hash_password_with_salt(password.expose(), &salt);
    hashed.map(|hashed| hashed.to_string()).map_err(|_| HashError::Failed)
}

/// The forms of a password that a hash can be of, the current one first; empty if it is longer than
/// any possible password.
fn forms(password: &Secret) -> Vec<Cow<'_, Secret>> {
    let form = normalized(password);
    let mut forms = Vec::with_capacity(2);
    if let Cow::Owned(_) = form {
        forms.push(Cow::Borrowed(password));
    }
    forms.insert(0, form);
    forms.retain(|form| form.expose().len() <= MAX_PASSWORD_BYTES);
    forms
}

fn is_of(stored: &PasswordHash, form: &Secret) -> bool {
    Argon2::default().verify_password(form.expose(), stored).is_ok()
}

/// Verifies a password against a PHC string, with the parameters in the string. The password is wrong if the
/// string is unreadable, not argon2id, or beyond the bounds of [`Parameters`], or the password is longer than
/// [`MAX_PASSWORD_BYTES`]; this costs the work of the current parameters, too. Without enough memory every
/// password is wrong.
pub fn verify(phc: &str, password: &Secret, current: &Parameters) -> Verification {
    let forms = forms(password);
    let Some((stored, is_current)) = read(phc, current).filter(|_| !forms.is_empty()) else {
        verify_unknown_user(password, current);
        return Verification { right: false, needs_rehash: false };
    };
    let right = forms.iter().find(|form| is_of(&stored, form));
    let is_normalized = right.is_some_and(|form| form.expose() == normalized(password).expose());
    Verification { right: right.is_some(), needs_rehash: right.is_some() && !(is_current && is_normalized) }
}

/// Does the work of [`verify`] for a user who does not exist or has no password, so that the time of an
/// answer does not reveal it. The time is that of a hash with the current parameters; a hash with older ones
/// differs until it is rehashed.
pub fn verify_unknown_user(password: &Secret, current: &Parameters) {
    let work = |bytes: &[u8]| {
        let mut out = [0; OUTPUT];
        if let Ok(engine) = current.engine() {
            std::hint::black_box(engine.hash_password_into(bytes, &[0; SALT], &mut out)).ok();
        }
        std::hint::black_box(out);
    };
    let forms = forms(password);
    if forms.is_empty() {
        let bytes = password.expose();
        work(bytes.get(..MAX_PASSWORD_BYTES).unwrap_or(bytes));
    }
    for form in &forms {
        work(form.expose());
    }
}

/// Whether two passwords are the same, however their letters are composed.
pub fn is_same_password(one: &Secret, other: &Secret) -> bool {
    normalized(one).matches(normalized(other).expose())
}

/// Whether the password is one of the user's earlier ones, given the newest first. At most [`MAX_HISTORY`]
/// are checked; unreadable hashes match nothing.
pub fn is_among(password: &Secret, history: &[impl AsRef<str>]) -> bool {
    let forms = forms(password);
    history.iter().take(MAX_HISTORY).any(|phc| {
        let stored = read(phc.as_ref(), &Parameters::default());
        stored.is_some_and(|(stored, _)| forms.iter().any(|form| is_of(&stored, form)))
    })
}

/// A PHC string that may be verified against, and whether its parameters are the current ones.
fn read(phc: &str, current: &Parameters) -> Option<(PasswordHash, bool)> {
    let stored = PasswordHash::new(phc).ok()?;
    let params = Params::try_from(&stored).ok()?;
    let parameters =
        Parameters { memory_kib: params.m_cost(), iterations: params.t_cost(), parallelism: params.p_cost() };
    let (salt, output) = (stored.salt.as_ref()?.len(), stored.hash.as_ref()?.len());
    let readable = stored.algorithm == ARGON2ID_IDENT
        && stored.version == Some(Version::V0x13.into())
        && parameters.are_bounded();
    let is_current = parameters == *current && salt >= SALT && output >= OUTPUT;
    readable.then_some((stored, is_current))
}

#[cfg(test)]
mod tests {
    use argon2::PasswordHasher as _;
    use chancery_record::Secret;

    use super::{HashError, MAX_HISTORY, Parameters, Verification, hash, is_among, is_same_password, verify};

    /// Below what `new` accepts, so that tests do not wait.
    const QUICK: Parameters = Parameters { memory_kib: 256, iterations: 2, parallelism: 1 };
    const RIGHT: Verification = Verification { right: true, needs_rehash: false };
    const WRONG: Verification = Verification { right: false, needs_rehash: false };

    fn secret(text: &str) -> Secret {
        Secret::new(text)
    }

    #[test]
    fn only_sound_parameters_are_accepted() {
        for (memory, iterations, lanes) in
            [(47_104, 1, 1), (19_456, 2, 1), (12_288, 3, 1), (9_216, 4, 1), (7_168, 5, 1), (1 << 20, 16, 8)]
        {
            assert!(Parameters::new(memory, iterations, lanes).is_ok(), "{memory} {iterations} {lanes}");
        }
        for (memory, iterations, lanes) in [
            (47_103, 1, 1),
            (19_455, 2, 1),
            (7_167, 16, 1),
            (1 << 20, 0, 1),
            ((1 << 20) + 1, 2, 1),
            (19_456, 17, 1),
            (19_456, 2, 0),
            (19_456, 2, 9),
        ] {
            assert!(Parameters::new(memory, iterations, lanes).is_err(), "{memory} {iterations} {lanes}");
        }
        assert_eq!(Parameters::new(19_456, 2, 1), Ok(Parameters::default()));
    }

    #[test]
    fn a_hash_is_salted_and_verifies_its_password() {
        let password = secret("grüne Ameise 7");
        let first = hash(&password, &Parameters::default()).unwrap();
        let second = hash(&password, &QUICK).unwrap();
        assert!(first.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "the form of a PHC string");
        assert_ne!(second, hash(&password, &QUICK).unwrap());
        assert_eq!(verify(&first, &password, &Parameters::default()), RIGHT);
        assert_eq!(verify(&first, &secret("grüne Ameise 8"), &Parameters::default()), WRONG);
        let old = Verification { right: true, needs_rehash: true };
        assert_eq!(verify(&second, &password, &Parameters::default()), old);
        assert_eq!(verify(&second, &secret("no"), &Parameters::default()), WRONG);
    }

    /// A hash of the typed bytes, as in releases before 0.2.0.
    fn hash_as_typed(password: &str) -> String {
        let engine = QUICK.engine().unwrap();
        engine.hash_password_with_salt(password.as_bytes(), &[7; 16]).unwrap().to_string()
    }

    #[test]
    fn composition_of_letters_does_not_matter() {
        let (composed, decomposed) =
            (secret("Gr\u{f6}\u{df}e z\u{e4}hlt"), secret("Gro\u{308}\u{df}e za\u{308}hlt"));
        assert!(is_same_password(&composed, &decomposed) && !is_same_password(&composed, &secret("x")));
        for made in [&composed, &decomposed] {
            let phc = hash(made, &QUICK).unwrap();
            for typed in [&composed, &decomposed] {
                assert_eq!(verify(&phc, typed, &QUICK), RIGHT);
                assert!(is_among(typed, &[&phc]));
            }
        }
        assert_eq!(verify(&hash(&composed, &QUICK).unwrap(), &secret("Grosse zahlt"), &QUICK), WRONG);
    }

    #[test]
    fn a_hash_of_the_typed_bytes_verifies_and_needs_a_rehash() {
        let (text, password) = ("Gro\u{308}\u{df}e", secret("Gro\u{308}\u{df}e"));
        let old = hash_as_typed(text);
        let found = verify(&old, &password, &QUICK);
        assert_eq!(found, Verification { right: true, needs_rehash: true });
        assert!(is_among(&password, &[&old]));
        assert_eq!(verify(&hash(&password, &QUICK).unwrap(), &password, &QUICK), RIGHT);
        assert_eq!(
            verify(&hash_as_typed("Gr\u{f6}\u{df}e"), &password, &QUICK),
            RIGHT,
            "what was composed already"
        );
    }

    /// A password whose normalized form is too long: its letters excluded from composition take more bytes.
    #[test]
    fn a_normalized_form_that_is_too_long_is_not_hashed() {
        let password = secret(&"\u{1d160}".repeat(256));
        assert_eq!(password.expose().len(), 1024);
        assert_eq!(hash(&password, &QUICK), Err(HashError::TooLong));
        assert_eq!(verify(&hash_as_typed("a"), &password, &QUICK), WRONG);
        let old = verify(&hash_as_typed(&"\u{1d160}".repeat(256)), &password, &QUICK);
        assert_eq!(old, Verification { right: true, needs_rehash: true });
    }

    /// The test vectors of the reference implementation (`src/test.c`: a short salt, one and two lanes), and
    /// two more computed with it: with our parameters, and with a short hash.
    #[test]
    fn the_reference_implementation_agrees() {
        for (tail, needs_rehash) in [
            ("p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4", true),
            ("p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc", true),
            ("p=1$c29tZXNhbHQtb2YtMTYtYg$8D7/ApckZcc0bRkriENTYsEoN+rMp6zPcdD21zMG55w", false),
            ("p=1$c29tZXNhbHQtb2YtMTYtYg$BFUDNfvGrf/uwS3oCxAiiQ", true),
        ] {
            let phc = format!("$argon2id$v=19$m=256,t=2,{tail}");
            let found = verify(&phc, &secret("password"), &QUICK);
            assert_eq!(found, Verification { right: true, needs_rehash }, "{tail}");
            assert_eq!(verify(&phc, &secret("passwore"), &QUICK), WRONG, "{tail}");
        }
    }

    /// Hashes of the right password by the reference implementation, but with argon2i, and with argon2id of
    /// the version before RFC 9106.
    #[test]
    fn other_algorithms_are_wrong() {
        for phc in [
            "$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQtb2YtMTYtYg$z73bAV1O7aqlFpiWF7ubIJkqygAGzUQsIdd5wrMh4qE",
            "$argon2id$v=16$m=256,t=2,p=1$c29tZXNhbHQtb2YtMTYtYg$oOfapZW1u5lAuzwwG8BvI4Z2HUFoDXqLD6N6PE7RFL4",
        ] {
            assert_eq!(verify(phc, &secret("password"), &QUICK), WRONG);
            assert!(!is_among(&secret("password"), &[phc]));
        }
    }

    #[test]
    fn unreadable_or_too_expensive_hashes_match_nothing() {
        let sound = hash(&secret("a"), &QUICK).unwrap();
        for phc in [
            String::new(),
            "a".to_owned(),
            sound.replace("m=256", "m=4294967295"),
            sound.replace("t=2", "t=4294967295"),
            sound.replace("p=1", "p=9"),
            sound.rsplit_once('$').unwrap().0.to_owned(),
        ] {
            assert_eq!(verify(&phc, &secret("a"), &QUICK), WRONG);
            assert!(!is_among(&secret("a"), &[phc]));
        }
    }

    #[test]
    fn a_too_long_password_is_neither_hashed_nor_verified() {
        let endless = secret(&"a".repeat(1025));
        assert_eq!(hash(&endless, &QUICK), Err(HashError::TooLong));
        // Its hash, made with the reference implementation.
        let phc =
            "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQtb2YtMTYtYg$OKuwW59QKUbOhayl/xZS4sRnn6fpbhGp+uWFu8K5z4I";
        assert_eq!(verify(phc, &endless, &QUICK), WRONG);
        assert!(!is_among(&endless, &[phc]));
        let longest = secret(&"a".repeat(1024));
        assert_eq!(verify(&hash(&longest, &QUICK).unwrap(), &longest, &QUICK), RIGHT);
    }

    #[test]
    fn earlier_passwords_are_recognized() {
        let mut history: Vec<String> =
            ["one", "two", "three"].map(|text| hash(&secret(text), &QUICK).unwrap()).into();
        assert!(is_among(&secret("three"), &history));
        assert!(!is_among(&secret("four"), &history));
        let oldest = history.remove(2);
        history.resize(MAX_HISTORY, history[0].clone());
        history.push(oldest);
        assert!(!is_among(&secret("three"), &history));
    }
}
