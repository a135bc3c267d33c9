import { ask, isId } from '../../../chats.js'

export async function POST(request) {
  const { id, messages } = await request.json()
  const question = messages?.at(-1)
  if (!isId(id) || !isId(question?.id) || question.role !== 'user') {
    return new Response('a chat and a question are required', { status: 400 })
  }
  const streamUrl = `/v1/stream/${await ask(id, question)}`
  return Response.json({ streamUrl }, { status: 201, headers: { location: streamUrl } })
}
