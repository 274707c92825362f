//! What requests cost, counted where the statements are sent.

use chancery_testkit::World;

/// The statements and round trips of the cheapest of so many requests. Each follows a preparation, which gets the number of the request
/// and is not counted. The cheapest counts, since jobs of the server execute statements, too, and each connection prepares its
/// statements once.
pub async fn cost<T>(
    world: &World,
    times: usize,
    prepare: impl AsyncFn(usize) -> T,
    request: impl AsyncFn(T),
) -> (u64, u64) {
    let mut cheapest = (u64::MAX, u64::MAX);
    for number in 0..times {
        let prepared = prepare(number).await;
        let before = world.app.store.figures();
        request(prepared).await;
        let after = world.app.store.figures();
        let cost = (after.statements - before.statements, after.round_trips - before.round_trips);
        cheapest = (cheapest.0.min(cost.0), cheapest.1.min(cost.1));
    }
    cheapest
}

/// So few connections that each has soon prepared the statements.
pub fn two_connections(_: &std::path::Path) -> Vec<String> {
    ["--database-connections", "2"].map(str::to_owned).to_vec()
}
