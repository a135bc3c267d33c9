const COMMON_DEFINITIONS = {
  url: { type: 'string', description: 'Address of the service. Default: http://127.0.0.1:8787' },
  token: { type: 'string', description: 'Access token to call the service with: see below' },
  dir: { type: 'string', description: 'Directory of a storage to work on instead of a service: see below' },
  basin: { type: 'string', description: 'Only this basin: NAME, or PREFIX* for all that begin so' },
  stream: { type: 'string', description: 'Only streams with this name, in the same way' },
  'encryption-key': {
    type: 'string',
    description: 'Key of encrypted streams: 32 bytes in base64. See below',
  },
  resume: { type: 'boolean', default: false, description: 'Go on with what was interrupted' },
  quiet: { type: 'boolean', default: false, description: 'No progress bar and no summary' },
} as const

export const EXPORT_DEFINITIONS = {
  ...COMMON_DEFINITIONS,
  out: { type: 'string', description: 'File to write; it must not exist. Default: standard output' },
  gzip: { type: 'boolean', default: false, description: 'Compress. Done anyway for a FILE.gz' },
} as const

export const IMPORT_DEFINITIONS = {
  file: {
    type: 'positional',
    required: false,
    description: 'File to read, compressed or not. Default: standard input',
  },
  ...COMMON_DEFINITIONS,
} as const

const SECRET_NOTES = [
  'The service is called with the token of --token, HEADWATER_TOKEN or HEADWATER_ROOT_TOKEN, whichever comes first. The key of encrypted streams is',
  'that of --encryption-key or HEADWATER_ENCRYPTION_KEY. Other users of the machine can see an option in the list of processes: prefer the',
  'environment variables. --dir works as the owner of a storage, without a token, while no server has it open.',
]

export const EXPORT_NOTES = [
  'Each stream is exported up to the tail that it has when its turn comes. Encrypted records are exported as plain text, so keep the file as safe as the key.',
  'Access tokens, keys and usage metrics are not exported.',
  'With --resume, FILE is cut back to what is whole and gone on with. Elsewhere: headwater export --dir data | headwater import --url URL',
  '',
  ...SECRET_NOTES,
]

export const IMPORT_NOTES = [
  'A stream that exists and has records is an error, before anything is written where the export is a file. With --resume it is gone on with where it',
  'ends, if its end fits. A file that was cut off is imported as far as it goes; then the exit code is 1. Retention counts anew from the import.',
  '',
  ...SECRET_NOTES,
]
