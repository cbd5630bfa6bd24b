export default function Home() {
  return <main>Identity link</main>;
}
