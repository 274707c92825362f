// What is proven and what is not, and the cases that prove it.

/** Says whether something holds; the run goes on, and fails at its end. */
export function hold(what, holds, detail = '') {
  if (holds) {
    console.log(`ok      ${what}`)
  } else {
    console.log(`FAILED  ${what}${detail === '' ? '' : `: ${detail}`}`)
    process.exitCode = 1
  }
}

/** Runs cases, some at a time. */
export async function runAll(cases, atOnce = 2) {
  const waiting = [...cases]
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [what, run] = next
      await run().catch((error) => hold(what, false, error.message))
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}
