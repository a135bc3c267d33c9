import { run } from './simulation.ts'

const seeds = Number(process.argv[2] ?? 20),
  steps = Number(process.argv[3] ?? 300),
  first = Number(process.argv[4] ?? 1)
let bad = 0,
  lines = 0
for (let s = first; s < first + seeds; s++) {
  const r = await run({ seed: s, steps })
  lines += r.lines.length
  if (r.violation) {
    bad++
    console.log(s, r.steps, r.isAtEnd, r.violation.message.slice(0, 600))
    if (seeds === 1) console.log(JSON.stringify(r.settings))
    if (seeds === 1) console.log(r.lines.slice(-Number(process.env.N ?? 60)).join('\n'))
  }
}
console.log({ bad, seeds, lines })
