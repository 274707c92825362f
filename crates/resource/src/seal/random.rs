//! Random bytes.

/// Random bytes from the operating system's generator.
///
/// # Panics
/// When the generator fails: without random bytes nothing could be done safely.
pub fn random<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    // without random bytes nothing could be done safely
    #[expect(clippy::expect_used, reason = "no secret, salt or token may be made without chance")]
    aws_lc_rs::rand::fill(&mut bytes).expect("the random generator works");
    bytes
}
