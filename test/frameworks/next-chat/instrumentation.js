export async function register() {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  const { continueAnswers } = await import('./chats.js')
  continueAnswers().catch(console.error)
}
