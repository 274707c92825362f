// Waiting for pages.

/** What the first of them answers; the others are waited for no longer. */
export function either(...waits) {
  for (const wait of waits) wait.catch(() => {})
  return Promise.race(waits)
}
