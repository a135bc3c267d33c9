import { invalid } from '../../../src/model/errors.ts'

// A file of its own, because the declarations of `headwater/s3` must not need the types of Node.

/** Keys of an account of the bucket's provider. */
export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Part of temporary credentials. */
  readonly sessionToken?: string | undefined
}

/** The keys of the environment, as AWS names them. */
export async function fromEnvironment(): Promise<S3Credentials> {
  const { AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = process.env
  if (!AWS_ACCESS_KEY_ID || !AWS_SECRET_ACCESS_KEY) {
    throw invalid('AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set', 'credentials')
  }
  return {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
    sessionToken: AWS_SESSION_TOKEN,
  }
}
