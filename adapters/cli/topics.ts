import { Help } from 'commander'
import { type Definitions, optionOf } from './command.ts'
import { TEMPLATE_LINES } from './generated-records.ts'
import { FIELD_LINES } from './record-format.ts'
import { KEY_DEFINITION, TARGET_DEFINITIONS } from './target.ts'

/** Returns the text of `headwater help options`: the options and terms that commands share. */
function optionsTopic(): string {
  return [
    'Options and terms of all commands',
    '',
    ...optionLines({ ...TARGET_DEFINITIONS, ...KEY_DEFINITION }),
    '',
    'Server or storage: a command works on the storage of --storage, else on the server of the first of',
    '--url, --context, HEADWATER_URL, HEADWATER_CONTEXT and the current context (`headwater login`), else on',
    'http://127.0.0.1:8787. A storage needs no token; no other process may have the directory open.',
    'Access token: that of the context if the server is chosen by a context, else --token, HEADWATER_TOKEN',
    'or HEADWATER_ROOT_TOKEN. Prefer the variables: other users of the machine can see options in the',
    'process list. The token of a context is sent to its server only, and that server gets no other token.',
    'Names: a stream is written BASIN/STREAM. The first slash separates, and stream names may contain more.',
    'A name that begins with the slash, such as /web/1, is in the basin that HEADWATER_BASIN names.',
    'Times: milliseconds since 1970, 2030-01-31 (midnight UTC), 2030-01-31T12:00:00Z, now, today or',
    'yesterday (local midnight), or a duration before now, such as -15m. Durations: 90s, 15m, 12h, 30d.',
    'Output: results are printed on standard output, everything else on standard error, without colour if it',
    'is not a terminal or NO_COLOR is set.',
    'Exit codes: 0 success, also if the reader of a pipe has ended; 1 the command failed; 2 invalid',
    'arguments; 3 `verify` found no data; 130 stopped with Ctrl+C, 143 with SIGTERM, except `serve`, which',
    'then ends with 0.',
  ].join('\n')
}

/** `headwater help format`: the templates of `read`, `tail` and `append`. */
function formatTopic(): string {
  return [
    'Templates',
    '',
    'read and tail print records as `--format TEMPLATE` says. Nothing is added to it, not even a line break.',
    '',
    ...FIELD_LINES,
    '',
    'append --count N and --rate R make records from the template TEXT:',
    '',
    ...TEMPLATE_LINES,
    '',
    'In both, %% is a percent sign, and \\n, \\t, \\r, \\0 and \\\\ are characters. Everything else is a matter of',
    'JSON: headwater read app-events/orders --json | jq -r .body',
  ].join('\n')
}

function optionLines(definitions: Definitions): string[] {
  const help = Object.assign(new Help(), { helpWidth: 100 })
  const options = Object.entries(definitions).flatMap(([name, one]) =>
    one.type === 'positional' ? [] : [optionOf(name, one)],
  )
  const width = Math.max(...options.map((option) => help.optionTerm(option).length))
  return options.map((option) =>
    help.formatItem(help.optionTerm(option), width, help.optionDescription(option), help),
  )
}

/** Texts of `headwater help` that are about no command. */
export const TOPICS: Readonly<Record<string, () => string>> = { options: optionsTopic, format: formatTopic }
