import { Command, Option } from '@commander-js/extra-typings'
import { CliError } from './errors.ts'
import { durationMs, fail, integer } from './values.ts'

/** Options that many commands have: they are explained in `headwater help options`. */
const SHARED = new WeakSet<object>()

/** Whether the help of a command shows only the name of the option. */
export function isShared(option: object): boolean {
  return SHARED.has(option)
}

function shared<const Flags extends string>(flags: Flags, description: string): Option<Flags> {
  const option = new Option(flags, description)
  SHARED.add(option)
  return option
}

interface CommandHelp {
  readonly description: string
  /** Command lines. */
  readonly examples?: readonly string[]
  /** Lines at the end. */
  readonly notes?: readonly string[]
  /** Groups of options of which only one can be given. */
  readonly exclusive?: readonly (readonly string[])[]
}

/** Starts the definition of a command. */
export function newCommand(name: string, { description, exclusive = [], ...help }: CommandHelp) {
  return new Command(name)
    .description(description)
    .helpCommand(false)
    .addHelpText('after', ({ command }) => {
      const names = command.options.filter(isShared).map(({ long }) => long)
      return names.length === 0 ? '' : `\nShared (headwater help options): ${names.join(' ')}`
    })
    .addHelpText('after', helpText(help))
    .hook('preAction', (command) => {
      for (const group of exclusive) {
        const [first, second] = group.filter(
          (name) => command.getOptionValueSource(camelCase(name)) === 'cli',
        )
        if (second !== undefined) {
          throw new CliError(2, `\`--${first}\` cannot be combined with \`--${second}\``)
        }
      }
    })
}

function camelCase(name: string): string {
  return name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}

/** Starts the definition of a command that works on a server or a storage. */
export function targetCommand(name: string, { exclusive = [], ...help }: CommandHelp) {
  const targets = [
    ['url', 'context', 'storage', 'dir'],
    ['token', 'storage', 'dir'],
  ]
  return newCommand(name, { ...help, exclusive: [...targets, ...exclusive] })
    .addOption(shared('--url <URL>', 'URL of the server, such as http://127.0.0.1:8787'))
    .addOption(shared('--token <TOKEN>', 'Access token for the server'))
    .addOption(shared('--context <NAME>', 'Server and token of `headwater login NAME`'))
    .addOption(
      shared(
        '--storage <STORAGE>',
        'Storage instead of a server: ./data, sqlite:FILE, postgres://HOST/DATABASE or s3://BUCKET/PREFIX',
      ),
    )
    .addOption(shared('--dir <DIRECTORY>', 'Same as --storage, for a directory'))
}

export const KEY_OPTIONS = ['encryption-key', 'encryption-key-file']

export function keyOption() {
  return shared(
    '--encryption-key <KEY>',
    'Key of encrypted streams: 32 bytes in base64. Default: HEADWATER_ENCRYPTION_KEY',
  )
}

export function keyFileOption() {
  return shared('--encryption-key-file <FILE>', 'File with that key')
}

/** Starts the definition of a command that reads or writes records. */
export function recordsCommand(name: string, { exclusive = [], ...help }: CommandHelp) {
  return targetCommand(name, { ...help, exclusive: [KEY_OPTIONS, ...exclusive] })
    .addOption(keyOption())
    .addOption(keyFileOption())
}

/** The options of commands that append. */
export const FENCING_OPTION = new Option(
  '--fencing-token <TOKEN>',
  'Fail unless the stream has this fencing token',
)
export const MATCH_OPTION = new Option(
  '--match-seq-num <N>',
  'Fail unless this is the next sequence number',
).argParser(integer())

/** The option of commands that can stop early. */
export const LIMIT_FLAGS = '-n, --limit <N>'

/** Collects the values of an option that may be repeated. */
export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value]
}

/** Whether the parser of an option takes the values before, as {@link collect} does. */
export function isRepeatable({ parseArg, argChoices }: Option): boolean {
  return argChoices === undefined && parseArg?.length === 2
}

/** Parses a duration, or 0. */
export function durationOrZero(text: string): number {
  return text === '0' ? 0 : (durationMs(text) ?? fail('It must be 0, or such as 90s or 15m'))
}

/** Returns the text after the options of a help. */
export function helpText({ examples = [], notes = [] }: Omit<CommandHelp, 'description'>): string {
  const lines = examples.length === 0 ? [] : ['Examples:', ...examples.map((line) => `  ${line}`)]
  return [lines, notes].flatMap((part) => (part.length === 0 ? [] : `\n${part.join('\n')}`)).join('\n')
}
