import { Command, type CommandUnknownOpts, Option } from '@commander-js/extra-typings'
import { durationMs, fail, integer } from './values.ts'

interface CommandHelp {
  readonly description: string
  /** Command lines. */
  readonly examples?: readonly string[]
  /** Lines at the end. */
  readonly notes?: readonly string[]
}

export function newCommand(name: string, { description, ...help }: CommandHelp) {
  return new Command(name).description(description).helpCommand(false).addHelpText('after', helpText(help))
}

/** Returns the text after the options of a help. */
export function helpText({ examples = [], notes = [] }: Omit<CommandHelp, 'description'>): string {
  const lines = examples.length === 0 ? [] : ['Examples:', ...examples.map((line) => `  ${line}`)]
  return [lines, notes].flatMap((part) => (part.length === 0 ? [] : `\n${part.join('\n')}`)).join('\n')
}

const SHARED = 'Server or storage:'

/** Puts the options that many commands have behind the others, in the help. */
export function moveSharedOptions({ options }: CommandUnknownOpts): void {
  const isShared = ({ helpGroupHeading }: Option) => Number(helpGroupHeading === SHARED)
  ;(options as Option[]).sort((one, other) => isShared(one) - isShared(other))
}

/** Defines an option that many commands have; `headwater help options` explains them together. */
function shared<const Flags extends string>(flags: Flags, description: string, conflicts: string[] = []) {
  return new Option(flags, description).conflicts(conflicts).helpGroup(SHARED)
}

const STORAGE = 'Storage: ./data, sqlite:FILE, postgres://HOST/DATABASE or s3://BUCKET/PREFIX'

export function targetCommand(name: string, help: CommandHelp) {
  return newCommand(name, help)
    .addOption(shared('--url <URL>', 'Server, such as http://127.0.0.1:8787', ['context', 'storage']))
    .addOption(shared('--token <TOKEN>', 'Access token for the server', ['storage']))
    .addOption(shared('--context <NAME>', 'Server and token of `headwater login`', ['storage']))
    .addOption(shared('--storage <STORAGE>', STORAGE))
}

export const KEY_OPTION = shared('--encryption-key <KEY>', 'Key of encrypted streams, in base64', [
  'encryptionKeyFile',
])
export const KEY_FILE_OPTION = shared('--encryption-key-file <FILE>', 'File with that key')

export function recordsCommand(name: string, help: CommandHelp) {
  return targetCommand(name, help).addOption(KEY_OPTION).addOption(KEY_FILE_OPTION)
}

export const FENCING_OPTION = new Option(
  '--fencing-token <TOKEN>',
  'Fail unless the stream has this fencing token',
)
export const MATCH_OPTION = new Option(
  '--match-seq-num <N>',
  'Fail unless this is the next sequence number',
).argParser(integer())

export const LIMIT_FLAGS = '-n, --limit <N>'

export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value]
}

export function durationOrZero(text: string): number {
  return text === '0' ? 0 : (durationMs(text) ?? fail('It must be 0, or such as 90s or 15m'))
}
